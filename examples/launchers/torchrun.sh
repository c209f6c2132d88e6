#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# FIRST=node-a NODES=2 NODE=0 torchrun.sh COMMAND..., and with NODE=1 on the second host: torchrun starts
# COMMAND as 2 ranks on each. WINDLASS_TOKEN_FILE has one token on all of them.
set -eu
if [ -z "${FIRST:-}" ] || [ -z "${NODES:-}" ] || [ -z "${NODE:-}" ] || [ $# -eq 0 ]; then
  echo "usage: FIRST=node-a NODES=2 NODE=0 [PORT=29500] $0 COMMAND..., and NODE=1 on the second host" >&2
  exit 2
fi
export WINDLASS_UCX_NET_DEVICES="${WINDLASS_UCX_NET_DEVICES:-eth0}"
# Ranks start at the port after that of torchrun itself. torch 1.13, which Debian has, can't read
# its own defaults for redirects and tee by Python 3.11: these name a rank that isn't there.
exec torchrun --nnodes "$NODES" --node_rank "$NODE" --nproc_per_node 2 --redirects 9:1 --tee 9:1 \
  --master_addr "$FIRST" --master_port "${PORT:-29500}" --no_python "$@"
