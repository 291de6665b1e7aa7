#!/usr/bin/env bash
# netns-cluster.sh - N virtual hosts on one machine: one network + UTS + mount
# namespace per host, joined by a bridge that lives in a namespace of its own,
# so no 10.x address ever exists in the root namespace.
#
#   up N                 create (or re-create) hosts h0 .. h(N-1); heals everything
#   exec I CMD...        run CMD as host I (own hostname, /etc/hosts, machine-id, /dev/shm, eth0)
#   cut I [MODE]         MODE: silent (default; switch blackholes, carrier stays up)
#                              link   (port down, host I sees NO-CARRIER)
#                              out    (only frames from I are lost)
#                              in     (only frames to I are lost)
#   split A B            lose frames between A and B only (both directions)
#   heal I|all           undo cut/split of I (or of all)
#   delay I MS [JIT] [LOSS%]   one-way delay in ms both ways (0 = remove)
#   rate I KBIT          limit host I's egress (tbf; 0 = remove)
#   crash I              power cut: silent cut, then SIGKILL everything on host I
#   ip I | hosts | status | pids I
#   down                 kill what runs in the hosts, remove everything
#
# env: NETNS_CLUSTER (name, default "nc"), NETNS_CLUSTER_NET (default 10.77.0;
#      host I is .$((10+I))), NETNS_CLUSTER_PIDNS=1 (exec: CMD in a new PID namespace)
# needs: root, iproute2, util-linux; nftables for out/in/split; cc for delay.
set -euo pipefail
NAME=${NETNS_CLUSTER:-nc}
NET=${NETNS_CLUSTER_NET:-10.77.0}
ST=/run/netns-cluster/$NAME
SW=$NAME-sw
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die()  { echo "netns-cluster: $*" >&2; exit 1; }
host() { echo "$NAME-h$1"; }
addr() { echo "$NET.$((10 + $1))"; }
count(){ cat "$ST/n" 2>/dev/null || echo 0; }
need() { [[ ${1:-} =~ ^[0-9]+$ ]] && (( $1 < $(count) )) || die "no host '${1:-}' (have $(count))"; }
port() { if ip -n "$SW" link show "d$1" &>/dev/null; then echo "d$1"; else echo "p$1"; fi; }
lock() { mkdir -p /run/netns-cluster; exec 9>"/run/netns-cluster/$NAME.lock"; flock -w 60 9 || die "lock"; }

down() {
  local ns p f
  if [[ -d $ST ]]; then for f in "$ST"/delay*.pid; do [[ -e $f ]] && kill -9 "$(cat "$f")" 2>/dev/null || true; done; fi
  for ns in $(ip netns list | awk -v n="$NAME" '$1 ~ "^"n"-(h[0-9]+|sw)$" {print $1}'); do
    for _ in 1 2 3; do p=$(ip netns pids "$ns" 2>/dev/null) || true; [[ -z $p ]] && break; kill -9 $p 2>/dev/null || true; sleep 0.05; done
    ip netns del "$ns" 2>/dev/null || true
  done
  if [[ -d $ST ]]; then
    for f in "$ST"/mnt* "$ST"/uts*; do [[ -e $f ]] && umount "$f" 2>/dev/null || true; done
    umount "$ST" 2>/dev/null || true
    rm -rf "$ST"
  fi
}

up() {
  local n=$1 i
  [[ $n =~ ^[0-9]+$ ]] && (( n >= 1 && n <= 200 )) || die "up N, 1..200"
  down
  mkdir -p "$ST"; mount --bind "$ST" "$ST"; mount --make-private "$ST"   # ns files need a private mount
  { echo "127.0.0.1 localhost"; for ((i = 0; i < n; i++)); do echo "$(addr $i) h$i"; done; } > "$ST/hosts"
  ip netns add "$SW"; ip -n "$SW" link set lo up
  ip -n "$SW" link add br0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0
  ip netns exec "$SW" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 2>/dev/null || true
  ip -n "$SW" link set br0 up
  for ((i = 0; i < n; i++)); do
    local h; h=$(host $i)
    ip netns add "$h"
    ip -n "$SW" link add "p$i" type veth peer name eth0 netns "$h"
    ip -n "$SW" link set "p$i" master br0 up
    ip -n "$h" link set lo up
    ip -n "$h" addr add "$(addr $i)/24" dev eth0
    ip -n "$h" link set eth0 up
    : > "$ST/mnt$i"; : > "$ST/uts$i"; mkdir -p "$ST/shm$i"
    nsenter --net="/run/netns/$h" unshare --uts="$ST/uts$i" --mount="$ST/mnt$i" --propagation slave sh -ec '
      hostname "h$1"
      mount --bind "$2/hosts" /etc/hosts
      mount -t tmpfs -o mode=1777 tmpfs /dev/shm
      t=$(mktemp -d); mount -t sysfs none "$t"           # sysfs of this net namespace: only its net part
      mount --bind "$t/devices/virtual/net" /sys/devices/virtual/net
      mount --bind "$t/class/net" /sys/class/net
      umount -l "$t"; rmdir "$t"
      if [ -e /etc/machine-id ]; then                    # a machine of its own, and a boot of its own
        tr -d - < /proc/sys/kernel/random/uuid > "$2/machine$1"
        mount --bind "$2/machine$1" /etc/machine-id
      fi
      cat /proc/sys/kernel/random/uuid > "$2/boot$1"
      mount --bind "$2/boot$1" /proc/sys/kernel/random/boot_id' sh "$i" "$ST"
  done
  echo "$n" > "$ST/n"
  # all ports must be forwarding before we return
  for ((i = 0; i < n; i++)); do
    for _ in $(seq 200); do bridge -n "$SW" link show dev "p$i" | grep -q "state forwarding" && break; sleep 0.01; done
  done
}

rebuild_drops() {   # $ST/drops: lines "iif oif" ('*' = any)
  ip netns exec "$SW" nft delete table bridge nc 2>/dev/null || true
  [[ -s $ST/drops ]] || return 0
  { printf 'table bridge nc {\n chain f {\n  type filter hook forward priority 0; policy accept;\n'
    while read -r a b; do
      [[ $a != '*' ]] && echo -n "iifname { p$a, d$a } "
      [[ $b != '*' ]] && echo -n "oifname { p$b, d$b } "
      echo "drop"
    done < "$ST/drops"
    printf ' }\n}\n'; } | ip netns exec "$SW" nft -f -
}

run() {   # run I CMD... (replaces this shell)
  local i=$1; shift
  local pidns=(); [[ ${NETNS_CLUSTER_PIDNS:-} == 1 ]] && pidns=(unshare --pid --fork --kill-child --mount-proc)
  exec 9>&- || true
  exec nsenter --net="/run/netns/$(host "$i")" --uts="$ST/uts$i" --mount="$ST/mnt$i" -- \
    sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD" "${pidns[@]}" "$@"
}

delay() {
  local i=$1 ms=$2 jit=${3:-0} loss=${4:-0} f="$ST/delay$1.pid"
  [[ -e $f ]] && { kill -9 "$(cat "$f")" 2>/dev/null || true; rm -f "$f"; }
  if ip -n "$SW" link show "d$i" &>/dev/null; then ip -n "$SW" link del "d$i"; ip -n "$SW" link set "p$i" master br0 up; fi
  [[ $ms == 0 && $loss == 0 ]] && return 0
  # sch_netem is used where the kernel has it; else a small AF_PACKET relay
  if [[ ! -x $ST/netns-delay ]]; then cc -O2 -o "$ST/netns-delay" "$HERE/netns-delay.c"; fi
  ip -n "$SW" link set "p$i" nomaster
  ip -n "$SW" link add "d$i" type veth peer name "e$i"
  ip -n "$SW" link set "e$i" up; ip -n "$SW" link set "d$i" master br0 up
  ( exec 9>&-; exec setsid ip netns exec "$SW" "$ST/netns-delay" "p$i" "e$i" "$ms" "$jit" "$loss" </dev/null >"$ST/delay$i.log" 2>&1 & echo $! > "$f" )
  for _ in $(seq 200); do bridge -n "$SW" link show dev "d$i" | grep -q "state forwarding" && grep -q ready "$ST/delay$i.log" && return 0; sleep 0.01; done
  die "delay relay did not start: $(cat "$ST/delay$i.log")"
}

cmd=${1:-}; shift || true
case $cmd in
  up)    lock; up "${1:?N}" ;;
  down)  lock; down ;;
  exec)  need "${1:-}"; (( $# >= 2 )) || die "exec I CMD..."; run "$@" ;;
  cut)   lock; need "${1:-}"
         case ${2:-silent} in
           silent) bridge -n "$SW" link set dev "$(port "$1")" state 0 ;;
           link)   ip -n "$SW" link set "p$1" down ;;
           out)    echo "$1 *" >> "$ST/drops"; rebuild_drops ;;
           in)     echo "* $1" >> "$ST/drops"; rebuild_drops ;;
           *)      die "cut I [silent|link|out|in]" ;;
         esac ;;
  split) lock; need "${1:-}"; need "${2:-}"; printf '%s %s\n%s %s\n' "$1" "$2" "$2" "$1" >> "$ST/drops"; rebuild_drops ;;
  heal)  lock
         if [[ ${1:-} == all ]]; then list=$(seq 0 $(( $(count) - 1 ))); : > "$ST/drops"; else need "${1:-}"; list=$1; fi
         for i in $list; do
           [[ -e $ST/drops ]] && { grep -vE "^$i |^[^ ]+ $i\$" "$ST/drops" > "$ST/drops.new" || true; mv "$ST/drops.new" "$ST/drops"; }
           ip -n "$SW" link set "p$i" up
           for _ in $(seq 100); do   # after a carrier flap the bridge needs a moment
             bridge -n "$SW" link set dev "$(port "$i")" state 3 2>/dev/null || true
             bridge -n "$SW" link show dev "$(port "$i")" | grep -q "state forwarding" && break; sleep 0.01
           done
         done
         rebuild_drops ;;
  delay) lock; need "${1:-}"; delay "$1" "${2:?MS}" "${3:-0}" "${4:-0}" ;;
  rate)  lock; need "${1:-}"; ip netns exec "$(host "$1")" tc qdisc del dev eth0 root 2>/dev/null || true
         [[ ${2:?KBIT} == 0 ]] || ip netns exec "$(host "$1")" tc qdisc add dev eth0 root tbf rate "${2}kbit" burst 64kb latency 200ms ;;
  crash) lock; need "${1:-}"; bridge -n "$SW" link set dev "$(port "$1")" state 0
         for _ in 1 2 3; do p=$(ip netns pids "$(host "$1")") || true; [[ -z $p ]] && break; kill -9 $p 2>/dev/null || true; sleep 0.02; done ;;
  pids)  need "${1:-}"; ip netns pids "$(host "$1")" ;;
  ip)    need "${1:-}"; addr "$1" ;;
  hosts) for ((i = 0; i < $(count); i++)); do echo "h$i $(addr $i)"; done ;;
  status) echo "cluster $NAME: $(count) hosts"; (( $(count) )) && { bridge -n "$SW" link; cat "$ST/drops" 2>/dev/null; } || true ;;
  *)     sed -n '2,/^set /p' "${BASH_SOURCE[0]}" | sed '$d;s/^# \?//'; exit 2 ;;
esac
