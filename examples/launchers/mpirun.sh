#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HOSTS=node-a:2,node-b:2 mpirun.sh COMMAND...: Open MPI starts COMMAND as 2 ranks on each of two hosts.
# WINDLASS_TOKEN_FILE lies at that path on all of them; the other variables of Windlass and UCX are handed on.
set -eu
if [ -z "${HOSTS:-}" ] || [ $# -eq 0 ]; then
  echo "usage: HOSTS=node-a:2,node-b:2 [PORT=7000] $0 COMMAND..." >&2
  exit 2
fi
first=${HOSTS%%[:,]*}
export WINDLASS_RENDEZVOUS="$first:${PORT:-7000}" # rank 0 listens there
export WINDLASS_UCX_NET_DEVICES="${WINDLASS_UCX_NET_DEVICES:-eth0}"
for name in $(env | sed -n 's/^\(WINDLASS_[A-Z_]*\|UCX_[A-Z0-9_]*\)=.*/\1/p'); do
  case $name in WINDLASS_TOKEN | WINDLASS_HOST) ;; *) set -- -x "$name" "$@" ;; esac
done
exec mpirun --host "$HOSTS" --bind-to none "$@"
