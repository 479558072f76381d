# A repair in place writes one temporary file, not one beside another, and none stays whenever it is stopped.
exec 2>&1
tool=$(dirname "$(command -v coffer)")/tests/coffer-interrupted
cp "$DATA/vectors/mscan/trailing-bytes.mscan" bad.mscan 2>/dev/null || { head -c 100 "$DATA/vectors/mscan/two-sequences.mscan" >bad.mscan; }
cp bad.mscan before.mscan
COFFER_TEST_CALLS=calls "$tool" repair --in-place -q bad.mscan >/dev/null
calls=$(cat calls)
rm -f calls bad.mscan.orig
nested=no
for signal in 2 9; do
    point=1
    while [ $point -le $((2 * calls)) ]; do
        cp before.mscan bad.mscan
        COFFER_TEST_SIGNAL=$signal COFFER_TEST_INTERRUPT=$point "$tool" repair --in-place -q bad.mscan >/dev/null
        case $(ls -A) in *.tmp.*.tmp*) nested=yes ;; esac
        if [ $signal = 2 ]; then
            ls -A | grep -v -x -e bad.mscan -e bad.mscan.orig -e before.mscan
        else
            rm -f bad.mscan.orig
            cp before.mscan bad.mscan
            coffer repair --in-place -q bad.mscan >/dev/null
            ls -A | grep -v -x -e bad.mscan -e bad.mscan.orig -e before.mscan
        fi
        rm -f bad.mscan.orig
        point=$((point + 1))
    done
done
echo "nested: $nested"
coffer check bad.mscan
