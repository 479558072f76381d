# The damaged file stays as it is; the result is beside it, and clean.
cp "$DATA/compat/mscan/mscanwriter-overwritten-head.mscan" scan.mscan
cp scan.mscan before
coffer repair scan.mscan
echo "exit $?"
cmp scan.mscan before && coffer check scan.repaired.mscan
echo "--- the result exists"
coffer repair scan.mscan
echo "exit $?"
coffer repair scan.mscan --force >/dev/null
echo "forced: exit $?"
coffer repair scan.mscan -o scan.mscan
echo "onto itself: exit $?"
echo "--- in place"
chmod 640 scan.mscan
coffer repair --in-place scan.mscan
echo "exit $?"
cmp scan.mscan.orig before && stat -c %a scan.mscan
coffer repair --in-place scan.mscan
echo "again: exit $?"
echo "--- an earlier original is never lost"
cp before scan.mscan
coffer repair --in-place scan.mscan
echo "exit $?"
cmp scan.mscan before
echo "--- through a link"
mkdir elsewhere
cp before elsewhere/real.mscan
ln -s elsewhere/real.mscan link.mscan
coffer repair --in-place link.mscan
test -L link.mscan && ls elsewhere
echo "--- nothing is left behind"
ls -A
