#!/bin/sh
# Drain nginx before an event, and start it again after it: a hook for `forewarn agent`.
#
# For hooks.d/prepare and hooks.d/undo; docs/recipes/nginx.md has the rest. First the health URL says 503,
# so that load balancers leave; then nginx takes nobody new and finishes what it is at.
set -eu

. "${1:-$(dirname "$0")/../../nginx.env}"
: "${PID_FILE:=/run/nginx.pid}" "${DRAINING:=/run/nginx-draining}" "${LEAVE_SECONDS:=15}"
: "${CUT_SECONDS:=10}" "${START:=systemctl start nginx}"
nothing_to_do=70
# What was begun before an interruption, and is found done now, was to do: it wants undoing.
[ "${EVENT_ATTEMPT:-1}" = 1 ] || nothing_to_do=0

# When to give up, a moment before the agent does.
now=$(date +%s)
deadline=${EVENT_DEADLINE:-$((now + 600))}
deadline=$((${deadline%.*} - 1))
# Who is asked to end says what is not done, as if that were now.
trap 'deadline=0' TERM

# A process that has ended, and that nobody has looked after, is none.
runs() {
    pid=$(cat "$PID_FILE" 2>/dev/null) && [ -n "$pid" ] \
        && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = nginx ] \
        && ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null
}

# Wait until nginx is gone, up to an instant and the deadline.
gone_by() {
    while runs; do
        now=$(date +%s)
        [ "$now" -lt "$1" ] && [ "$now" -lt "$deadline" ] || return 1
        sleep 0.2 || :
    done
}

prepare() {
    runs || exit $nothing_to_do
    echo leaving > "$DRAINING"
    # Short notice is shared: half for the load balancers, half for those who are being served.
    half=$(((deadline - now) / 2))
    leave=$LEAVE_SECONDS
    [ "$leave" -le "$half" ] || leave=$half
    [ "$leave" -le 0 ] || sleep "$leave" || :
    runs || exit 0
    echo quitting > "$DRAINING"
    kill -QUIT "$pid"
    gone_by "$deadline" || {
        echo "nginx $pid is still serving: somebody takes longer than there is time" >&2
        exit 1
    }
}

undo() {
    was=$(cat "$DRAINING" 2>/dev/null) || was=
    rm -f "$DRAINING"
    if [ "$was" = quitting ] && runs; then
        # Called off in the middle of it. A nginx that quits cannot be asked to stay, and nobody new is served
        # until it is gone: who is served still has a little more time, and is cut off then.
        gone_by "$(($(date +%s) + CUT_SECONDS))" || {
            runs && kill -TERM "$pid"
            gone_by "$deadline" || { echo "nginx $pid does not end" >&2; exit 1; }
        }
    fi
    if runs; then
        [ -n "$was" ] || exit $nothing_to_do
    else
        sh -c "$START"
    fi
}

case ${EVENT_PHASE:?run by the agent, which sets it} in
    prepare) prepare ;;
    undo) undo ;;
    *) exit $nothing_to_do ;;
esac
