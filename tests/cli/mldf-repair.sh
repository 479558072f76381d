# Damaged samples are listed, left out, or fetched from a second copy.
set="$DATA/vectors/mldf/checksummed.mldf"
cp "$set" damaged.mldf
chmod u+w damaged.mldf
python3 - <<'END'
import json, subprocess
def offset(sample, field):
    stored = subprocess.run(["coffer", "get", "damaged.mldf", "%d.%s" % (sample, field), "--stored"], stdout=subprocess.PIPE).stdout
    whole = open("damaged.mldf", "rb").read()
    assert whole.count(stored) == 1, (sample, field)
    return whole.index(stored)
places = [offset(3, "emb"), offset(9, "image"), offset(9, "caption")]
with open("damaged.mldf", "r+b") as file:
    for place in places:
        file.seek(place)
        file.write(b"\xee")
END
coffer check damaged.mldf
echo "exit $?"
coffer check --full damaged.mldf | grep -o 'sample.*'
coffer get damaged.mldf 9.caption 2>&1 | head -n 1
echo "# without them"
coffer repair damaged.mldf -o without.mldf
echo "exit $?"
coffer check --full without.mldf
coffer get without.mldf --field caption
echo "# from a copy"
coffer repair damaged.mldf --from "$set" -o whole.mldf
echo "exit $?"
coffer check --full whole.mldf
for sample in 3 9 16; do
    coffer get whole.mldf $sample --json >now
    coffer get "$set" $sample --json | cmp - now && echo "sample $sample is what it was"
done
echo "# in place"
coffer repair damaged.mldf --from "$set" --in-place --json
echo "exit $?"
coffer check --full damaged.mldf
coffer repair damaged.mldf --from "$set"
echo "exit $?"
echo "# a copy that is none"
cp damaged.mldf.orig bad.mldf
coffer repair bad.mldf --from "$DATA/vectors/mldf/page-2m.mldf" -o out.mldf 2>&1
echo "exit $?"
coffer repair bad.mldf --from now -o out.mldf 2>&1
echo "exit $?"
coffer repair "$DATA/vectors/mscan/two-sequences.mscan" --from "$set" -o out.mscan 2>&1
echo "exit $?"
ls
