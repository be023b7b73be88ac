# shellcheck shell=bash
# Output for people: one line for each step, with its duration.

say() { printf '%s\n' "$*" >&2; }
die() { say "cluster: $*"; exit 1; }

now_ms() { local t=${EPOCHREALTIME/[.,]/}; printf '%s' "$((t / 1000))"; }
secs() { printf '%d.%d' "$(($1 / 1000))" "$(($1 % 1000 / 100))"; }

STARTED_MS=$(now_ms)

# step NAME COMMAND...: runs the command in this shell and prints its duration. The
# command is not part of a condition, so that "set -e" applies within it.
CURRENT_STEP=
step() {
  local name=$1 began
  shift
  began=$(now_ms)
  CURRENT_STEP=$name
  "$@"
  CURRENT_STEP=
  say "$(printf '%6ss  %s' "$(secs $(($(now_ms) - began)))" "$name")"
}

name_failed_step() {
  if [ -n "$CURRENT_STEP" ]; then say "cluster: FAILED in step: $CURRENT_STEP (logs: $LOGS)"; fi
}
trap name_failed_step EXIT

total() { say "$(printf '%6ss  total: %s' "$(secs $(($(now_ms) - STARTED_MS)))" "$*")"; }

# wait_for SECONDS WHAT COMMAND...: polls until the command succeeds.
wait_for() {
  local limit=$1 what=$2 until
  shift 2
  until=$(($(now_ms) + limit * 1000))
  while ! "$@" >/dev/null 2>&1; do
    if (($(now_ms) > until)); then
      say "cluster: gave up after ${limit}s waiting for: $what (logs: $LOGS)"
      return 1
    fi
    sleep 0.1
  done
}
