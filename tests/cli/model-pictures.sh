# ls -o draws the sizes of the entries, stats -o the values of tensors; names stay text.
PYTHONPATH=$DATA/support python3 - <<'PYTHON'
from models import safetensors
names = ["layers.0.mlp.down_proj.weight", "layers.1.mlp.down_proj.weight", "<script>alert(1)</script>", "head\u202egpj", "a" * 300]
safetensors("model.safetensors", {name: ("F32" if i else "I32", (64, i + 1)) for i, name in enumerate(names)})
PYTHON
coffer ls model.safetensors -o map.svg
coffer ls model.safetensors -o map.png --width 300 --height 220
head -c 4 map.png | tail -c 3
echo
coffer stats model.safetensors -o values.svg
coffer stats model.safetensors -o values.png --top 2
coffer stats model.safetensors -o all.png --top 0 --force
for picture in map.svg values.svg; do
    head -c 5 $picture
    echo
    grep -c -i '<script' $picture
    python3 -c "import sys, xml.dom.minidom as dom; dom.parse(sys.argv[1]); print(sys.argv[1], 'is well-formed')" $picture
done
coffer ls model.safetensors -o map.svg || echo "status $?"
coffer ls model.safetensors -o map.jpg || echo "status $?"
coffer ls model.safetensors -o new.svg --json || echo "status $?"
coffer ls model.safetensors model.safetensors -o two.svg || echo "status $?"
coffer ls model.safetensors 'nothing*' -o none.svg || echo "status $?"
coffer stats model.safetensors -o values.pdf || echo "status $?"
coffer stats model.safetensors -o new.svg --csv || echo "status $?"
coffer stats model.safetensors -o none.svg --include nothing || echo "status $?"
coffer ls "$DATA/compat/mscan/scanner-io-two-appends.mscan" --what params -o none.svg || echo "status $?"
ls
