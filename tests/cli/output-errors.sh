# A full disk is reported, a closed pipe is not.
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
# A file size limit (SIGXFSZ) gives an error and leaves no partial file.
(
    cd "$OLDPWD" || exit
    ulimit -f 8
    coffer pack "$DATA/compat/mcf/hf-folder" model.mcf
    echo "exit $?"
    ls -A
)
coffer convert "$DATA/vectors/mscan/empty.mscan" /dev/full --to csv
