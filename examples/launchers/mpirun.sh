#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HOSTS=node-a:2,node-b:2 mpirun.sh COMMAND...: Open MPI starts COMMAND as 2 ranks on each of two hosts.
# WINDLASS_TOKEN_FILE lies at that path on all of them.
set -eu
first=${HOSTS%%[:,]*}
export WINDLASS_RENDEZVOUS="$first:${PORT:-7000}" # rank 0 listens there
export WINDLASS_UCX_NET_DEVICES="${WINDLASS_UCX_NET_DEVICES:-eth0}"
exec mpirun --host "$HOSTS" --bind-to none -x WINDLASS_RENDEZVOUS -x WINDLASS_TOKEN_FILE \
  -x WINDLASS_UCX_NET_DEVICES "$@"
