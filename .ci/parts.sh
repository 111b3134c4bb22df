# Functions of `.ci/run` and `.ci/full`: parts run in lanes beside one another, and each prints its output and its time when it ends.

parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT

# part NAME COMMAND...: runs a command and prints its output at its end. A part that fails does not end its lane.
part() {
  local name=$1 started=$SECONDS code=0
  shift
  "$@" >"$parts/$name.output" 2>&1 </dev/null || code=$?
  ended "$name" "$code" $((SECONDS - started))
}

# shown NAME COMMAND...: the same, with its output as it comes.
shown() {
  local name=$1 started=$SECONDS code=0
  shift
  echo "== $name"
  "$@" </dev/null || code=$?
  ended "$name" "$code" $((SECONDS - started))
}

# ended NAME CODE SECONDS: prints what a part printed, its result and its time, and notes them. The parts of all lanes take turns.
ended() {
  local result=passed
  [ "$2" -eq 0 ] || result="FAILED ($2)"
  (
    flock 9
    if [ -f "$parts/$1.output" ]; then printf '== %s\n' "$1"; cat "$parts/$1.output"; fi
    printf '== %s: %s in %d:%02d\n\n' "$1" "$result" $(($3 / 60)) $(($3 % 60))
    printf '%4d:%02d  %-8s %s\n' $(($3 / 60)) $(($3 % 60)) "$result" "$1" >>"$parts/results"
  ) 9>"$parts/turn"
}

# summary: the time and the result of each part, and the exit code of the run.
summary() {
  echo "Parts:"
  sort -r "$parts/results"
  printf '%4d:%02d  together\n' $((SECONDS / 60)) $((SECONDS % 60))
  ! grep -q FAILED "$parts/results"
}
