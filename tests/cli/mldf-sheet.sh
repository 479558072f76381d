# A contact sheet: pictures, sounds and texts, as PNG and SVG.
set="$DATA/vectors/mldf/all-types-208.mldf"
kind() { head -c 4 "$1" | od -An -c; }
coffer sheet "$set" -o pictures.png && kind pictures.png
coffer sheet "$set" -o sounds.svg --field audio --label caption -n 4 && grep -c '<svg' sounds.svg
coffer sheet "$set" -o two.svg --field audio --field caption -n 2 && grep -o "<svg [^>]*width=.[0-9]*" two.svg | grep -o "width=.*"
coffer sheet "$set" -o texts.png --field caption --columns 3 --size 64 --samples 2..8 && kind texts.png
coffer sheet "$set" -o again.png && cmp pictures.png again.png && echo "the same samples"
coffer sheet "$set" -o other.png --seed 1
cmp -s pictures.png other.png || echo "other samples"
coffer sheet "$set" -o numbers.png --field label --label score && kind numbers.png
coffer sheet "$DATA/vectors/mldf/payload-bit-flip.mldf" -o damaged.png 2>&1
echo "exit $?"
kind damaged.png
python3 - <<'END'
import struct
for name, size in ("pictures.png", (1042, 624)), ("texts.png", (232, 236)):
    width, height = struct.unpack(">II", open(name, "rb").read()[16:24])
    print(name, width, height)
END
coffer sheet "$set" -o /nowhere/sheet.png 2>&1
echo "exit $?"
ls
echo "# a picture that no decoder takes"
mkdir cut
coffer get "$set" 3.image -o whole.png
head -c 60 whole.png >cut/1.png
coffer pack cut cut.mldf --store-damaged | cut -d , -f 1
coffer sheet cut.mldf -o cut.png 2>&1
echo "exit $?"
echo "# a wrong key is an error of the set, which names the sample itself"
printf '%032d' 1 >key
printf '%032d' 2 >wrong
mkdir one
cp whole.png one/1.png
coffer pack one secret.mldf --encrypt --key-file key | cut -d , -f 1
coffer sheet secret.mldf -o secret.png --key-file wrong 2>&1
echo "exit $?"
