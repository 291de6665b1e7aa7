#!/bin/sh
# A worker that leaves a process which nothing about it gives away: double-forked, in a session of its own, with an empty
# environment. Says that it is there, then does as told: stays, stays whatever it is asked, or fails once it has started.
exec 9> "$1.$RANK"
flock -n 9
case $? in
  0) ;;
  1) echo "a second holder of rank $RANK" >> "$1.violations"; exit 99 ;;
  *) exit 98 ;;  # It was killed.
esac
(setsid env -i /bin/sleep 1000 &)
echo "$RANK" >> "$1"
case $2 in
  stay) exec /bin/sleep 1000 ;;
  stubborn) trap '' TERM INT; while :; do /bin/sleep 1000; done ;;
  fail) exit 3 ;;
esac
