#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HOSTS=node-a:2,node-b:2 mpirun.sh COMMAND...: Open MPI starts COMMAND as 2 ranks on each of two hosts.
# WINDLASS_TOKEN_FILE lies at that path on all of them; the other variables of Windlass are handed on.
set -eu
first=${HOSTS%%[:,]*}
export WINDLASS_RENDEZVOUS="$first:${PORT:-7000}" # rank 0 listens there
export WINDLASS_UCX_NET_DEVICES="${WINDLASS_UCX_NET_DEVICES:-eth0}"
for name in $(env | sed -n 's/^\(WINDLASS_[A-Z_]*\)=.*/\1/p'); do
  [ "$name" = WINDLASS_TOKEN ] || set -- -x "$name" "$@"
done
exec mpirun --host "$HOSTS" --bind-to none "$@"
