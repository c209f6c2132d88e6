# SPDX-License-Identifier: Apache-2.0
# The windlass command, from the archive that scripts/release makes. FOLDER is the folder of the release. The suite `release` runs
# a linter on this file. Nobody has built the image yet: the machines that test this project have no Docker.
#   docker build -f Dockerfile --build-arg VERSION=0.1.0 -t windlass FOLDER
#   docker run --rm windlass demo
FROM debian:12-slim
ARG VERSION=0.1.0
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless libucx0 \
 && rm -rf /var/lib/apt/lists/*
ADD windlass-${VERSION}-linux-x86_64.tar.gz /opt/
RUN ln -s /opt/windlass-${VERSION}-linux-x86_64 /opt/windlass \
 && useradd --system --create-home windlass
ENV PATH=/opt/windlass/bin:$PATH
USER windlass
WORKDIR /home/windlass
ENTRYPOINT ["windlass"]
CMD ["--help"]
