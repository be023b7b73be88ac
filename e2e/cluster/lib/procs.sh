# shellcheck shell=bash
# Starts, finds and kills the daemons. They outlive this shell and keep none of its files
# open. They are recorded by process id and start time, because ids are reused.

# tracking_root: prints the cgroup hierarchy in which the cluster's processes are found. cgroup v1
# has several hierarchies.
tracking_root() {
  if [ -d /sys/fs/cgroup/pids ]; then echo /sys/fs/cgroup/pids; else echo /sys/fs/cgroup; fi
}

# start_time PID: prints the start time of a process. Fails if it has ended.
start_time() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # The name in parentheses may contain spaces, so fields are counted after it.
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  [ "$1" != Z ] && echo "${20}"
}

# close_others: closes the inherited files. Otherwise a daemon would keep the caller's pipe
# or lock open.
close_others() {
  local fd
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if ((fd > 2)) && [ "$fd" != 255 ]; then eval "exec $fd>&-"; fi
  done
}

# daemon NAME COMMAND...: starts a daemon in the cluster's cgroup, and records its process id and
# start time.
daemon() {
  local name=$1 pid
  shift
  # shellcheck disable=SC2153  # from env.sh
  mkdir -p "$PIDS" "$LOGS" "$(tracking_root)/$CGROUP/daemons"
  (
    cd /
    close_others
    exec </dev/null >>"$LOGS/$name.log" 2>&1
    echo "$BASHPID" >"$(tracking_root)/$CGROUP/daemons/cgroup.procs"
    # The environment is empty, because that of the caller may contain secrets.
    exec setsid env -i PATH="$(dirname "$(bin runc)"):$(dirname "$(bin containerd)"):$CNI_PLUGINS:/usr/sbin:/usr/bin:/sbin:/bin" \
      HOME=/root KUBECACHEDIR="$STATE/kubectl-cache" BLOOMERY_STATE="$STATE" BLOOMERY_CACHE="${CACHE%/cluster-bin}" "$@"
  ) &
  pid=$!
  echo "$pid $(start_time "$pid")" >"$PIDS/$name"
}

# running NAME: succeeds if the recorded process still runs.
running() {
  local pid began
  read -r pid began 2>/dev/null <"$PIDS/$1" || return 1
  [ -n "$began" ] && [ "$(start_time "$pid")" = "$began" ]
}

# kill_daemon NAME: kills without a grace period, because the state is deleted next.
kill_daemon() {
  local pid
  running "$1" || return 0
  read -r pid _ <"$PIDS/$1"
  kill -KILL "$pid" 2>/dev/null || true
}

# our_processes: prints the ids of all processes in the cluster's cgroup: daemons, shims
# and containers. This works even if containerd is dead.
our_processes() {
  local dir
  dir=$(tracking_root)/$CGROUP
  [ -d "$dir" ] || return 0
  find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

kill_our_processes() {
  local tries pids
  for ((tries = 0; tries < 200; tries++)); do
    mapfile -t pids < <(our_processes)
    ((${#pids[@]})) || return 0
    kill -KILL "${pids[@]}" 2>/dev/null || true
    sleep 0.05
  done
  say "cluster: these processes could not be killed: ${pids[*]}"
  return 1
}

# wait_port_free PORT: waits until the port of a killed server is free.
wait_port_free() {
  wait_for 20 "port $1 to be free, held by: $(ss -Hltnp "sport = :$1" | head -1)" port_free "$1"
}
port_free() { [ -z "$(ss -Hltn "sport = :$1")" ]; }
