#!/bin/sh
# Have a batch job write its checkpoint and end before an event, and go on from there after it: a hook
# for `forewarn agent`.
#
# For hooks.d/prepare and hooks.d/undo; docs/recipes/batch.md has the rest.
set -eu

. "${1:-$(dirname "$0")/../../batch.env}"
: "${PID:?what tells the process id of the job, such as: systemctl show -P MainPID batch}"
: "${CHECKPOINT:?the file that the job writes}" "${START:?what starts the job again}"
: "${SIGNAL:=USR1}" "${FINISHED:=}"
nothing_to_do=70
# What was begun before an interruption, and is found done now, was to do: it wants undoing.
[ "${EVENT_ATTEMPT:-1}" = 1 ] || nothing_to_do=0

# When to give up, a moment before the agent does.
deadline=${EVENT_DEADLINE:-$(($(date +%s) + 600))}
deadline=$((${deadline%.*} - 1))
# Who is asked to end says what is not done, as if that were now.
trap 'deadline=0' TERM

# A process that has ended, and that nobody has looked after, is none.
runs() {
    [ "$pid" -gt 0 ] 2>/dev/null && [ -d "/proc/$pid" ] \
        && ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null
}

# Where the job keeps no process id, there is none; where nothing can tell it, that is a mistake.
look_up() {
    status=0
    pid=$(sh -c "$PID") || status=$?
    [ "$status" -lt 126 ] || { echo "PID cannot be run: $PID" >&2; exit 1; }
}

prepare() {
    look_up
    runs || exit $nothing_to_do
    # Beside the checkpoint, so that both are dated by one file system.
    mark=$(mktemp "$CHECKPOINT.XXXXXX")
    trap 'rm -f "$mark"' EXIT
    kill -s "$SIGNAL" "$pid"
    while runs; do
        [ "$(date +%s)" -lt "$deadline" ] || {
            echo "job $pid works still: it did not end within the time there is" >&2
            exit 1
        }
        sleep 0.2 || :
    done
    # It may just have been done; then there is nothing to go on with.
    if [ -n "$FINISHED" ] && [ -e "$FINISHED" ]; then
        return
    fi
    if [ ! -e "$CHECKPOINT" ] || [ "$mark" -nt "$CHECKPOINT" ]; then
        echo "job $pid ended without a new checkpoint in $CHECKPOINT" >&2
        exit 1
    fi
}

undo() {
    if [ -n "$FINISHED" ] && [ -e "$FINISHED" ]; then
        exit $nothing_to_do
    fi
    look_up
    ! runs || exit $nothing_to_do
    sh -c "$START"
}

case ${EVENT_PHASE:?run by the agent, which sets it} in
    prepare) prepare ;;
    undo) undo ;;
    *) exit $nothing_to_do ;;
esac
