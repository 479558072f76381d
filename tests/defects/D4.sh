# A truncated picture is found when it is packed, and by check --decode.
mkdir in
head -c 500 "$DATA/media/turned.jpg" >in/cut.jpg
cp "$DATA/media/turned.jpg" in/whole.jpg
coffer pack in out.mldf
echo "exit $?"
ls
coffer pack in out.mldf --store-damaged | sed 's/, [0-9.]* [KM]iB//'
coffer check --full out.mldf
coffer check --decode out.mldf
echo "exit $?"
coffer check --decode out.mldf --json
coffer get out.mldf 0.image -o x.png
echo "exit $?"
echo "# damage inside, which only decoding finds"
mkdir inside
python3 - "$DATA/media/turned.jpg" inside/zeroed.jpg <<'EOF'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-40:-2] = bytes(38)
open(sys.argv[2], "wb").write(data)
EOF
cp in/whole.jpg inside/
coffer pack inside inside.mldf >/dev/null
echo "exit $?"
coffer pack inside decoded.mldf --decode
echo "exit $?"
coffer pack inside decoded.mldf --decode --keep-going | sed 's/, [0-9.]* [KM]iB//'
coffer check --decode decoded.mldf
coffer check --decode "$DATA/vectors/mcf/directory-first.mcf" 2>&1 | tail -n 2
