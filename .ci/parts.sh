# Functions of `.ci/run` and `.ci/full`: parts run in lanes beside one another, and each prints its output and its time when it ends.

parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
# What `time` prints: seconds, and those of processors.
TIMEFORMAT='%0R %0U %0S'

# part NAME COMMAND...: runs a command and prints its output at its end. A part that fails does not end its lane.
part() {
  local name=$1 code=0
  shift
  { time "$@" >"$parts/$name.output" 2>&1 </dev/null; } 2>"$parts/$name.time" || code=$?
  ended "$name" "$code"
}

# shown NAME COMMAND...: the same, with its output as it comes.
shown() {
  local name=$1 code=0
  shift
  echo "== $name"
  { time "$@" 2>&1 </dev/null; } 2>"$parts/$name.time" || code=$?
  ended "$name" "$code"
}

# ended NAME CODE: prints what a part printed, its result and its times, and notes them. The parts of all lanes take turns.
ended() {
  local result=passed line
  [ "$2" -eq 0 ] || result="FAILED ($2)"
  (
    flock 9
    if [ -f "$parts/$1.output" ]; then printf '== %s\n' "$1"; cat "$parts/$1.output"; fi
    line=$(awk '{ printf "%3d:%02d  %3d:%02d of processors", $1 / 60, $1 % 60, ($2 + $3) / 60, ($2 + $3) % 60 }' "$parts/$1.time")
    printf '== %s: %s, %s\n\n' "$1" "$result" "$line"
    printf '%s  %-10s  %s\n' "$line" "$result" "$1" >>"$parts/results"
  ) 9>"$parts/turn"
}

# summary: the times and the result of each part, the longest first, and the exit code of the run.
summary() {
  echo "Parts:"
  sort -r "$parts/results"
  printf '%3d:%02d  together\n' $((SECONDS / 60)) $((SECONDS % 60))
  ! grep -q FAILED "$parts/results"
}
