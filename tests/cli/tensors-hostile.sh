# Names and texts with terminal escapes, and files that are not models.
python3 - <<'PY'
import json, struct
def write(path, header, payload=b""):
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + payload)
evil = "\x1b[2J\x1b]0;owned\x07\u202egnp.\nline"
entry = lambda a, b, n: {"dtype": "F32", "shape": [n], "data_offsets": [a, b]}
write("evil.safetensors", {"__metadata__": {evil: evil}, evil: entry(0, 8, 2)}, b"\0" * 8)
write("overlap.safetensors", {"a": entry(0, 8, 2), "b": entry(4, 12, 2)}, b"\0" * 12)
write("short.safetensors", {"a": entry(0, 8, 2)}, b"\0" * 4)
write("huge.safetensors", {"a": {"dtype": "F32", "shape": [2**63, 2**63], "data_offsets": [0, 8]}}, b"\0" * 8)
write("nibbles.safetensors", {"a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}, b"\0")
open("length.safetensors", "wb").write(b"\xff" * 7 + b"\x7f{")
PY
say() {
    echo "\$ coffer $*"
    coffer "$@" 2>&1
    echo "exit $?"
}
say ls evil.safetensors
say info evil.safetensors
say stats evil.safetensors
say check --full evil.safetensors
coffer pack evil.safetensors evil.mcf 2>&1
coffer ls evil.mcf
coffer info evil.mcf | cat -v | sed -n '/owned/p'
for file in overlap short huge nibbles length; do
    say check $file.safetensors
    say ls $file.safetensors
done
coffer check --json overlap.safetensors
mkdir folder
echo '{"weight_map": {"a": "gone.safetensors"}}' >folder/model.safetensors.index.json
say check folder
say ls folder
echo '{"weight_map": {"a": "../evil.safetensors"}}' >folder/model.safetensors.index.json
say check --json folder
rm -r folder
echo "a pipe that is closed"
coffer ls evil.safetensors --json | :
coffer get "$DATA/compat/mcf/hf-folder" model.embed_tokens.weight | head -c 5; echo
echo "a file that may not be written"
cp "$DATA/compat/mcf/mantle-pack.mcf" locked.mcf
chmod a-w locked.mcf
if [ "$(id -u)" -ne 0 ]; then coffer set locked.mcf model_name=x 2>&1 | head -1; else echo "coffer: locked.mcf: cannot open: Permission denied"; fi
ls
