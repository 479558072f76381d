# A full disk is told, a closed pipe is not.
cd "$DATA/vectors/mscan"
coffer check two-sequences.mscan >/dev/full
echo "exit $?"
coffer help >/dev/full
echo "exit $?"
coffer formats --json >/dev/full
echo "exit $?"
# A reader that goes away before anything is written: no word about it, with and without the signal.
mkfifo "$OLDPWD/pipe"
{ coffer check ./*.mscan; echo "exit $?" >&3; } 3>&1 >"$OLDPWD/pipe" &
head -c 0 "$OLDPWD/pipe"
wait
coffer convert "$DATA/vectors/mscan/empty.mscan" /dev/full --to csv
