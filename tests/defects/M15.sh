# M15: tensors are listed in the order people count, a long name does not pad every row, and info begins with the
# facts of the model.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
import os, json
from models import *
os.mkdir("m")
names = ["layers.%d.w" % i for i in (0, 1, 2, 9, 10, 11, 100)] + ["x" * 120]
safetensors("m/model.safetensors", {name: ("F32", [2]) for name in reversed(names)})
with open("m/config.json", "w") as out:
    json.dump({"model_type": "llama", "hidden_size": 64}, out)
gguf("m.gguf", {"general.architecture": ("string", "llama")}, {name: ("F32", [2], None) for name in names[:-1]})
END
coffer pack m m.mcf >/dev/null
columns() { sed 's/ *[0-9]* *[0-9]* bytes$//; s/^\(............\).*/\1/' | cut -c1-12; }
for file in m/model.safetensors m.mcf m.gguf; do
    echo "$ coffer ls $file"
    coffer ls $file | columns
done
coffer ls m.mcf --sort name --reverse | columns | head -4
coffer ls m.mcf | awk 'NR == 2 { print (length($0) < 110 ? "short rows" : "padded rows") }'
coffer info m.mcf | sed -n 2,4p
echo "without -v: $(coffer info m.mcf | grep -c 'sections\|flags\|section list')"
echo "with -v: $(coffer info -v m.mcf | grep -c 'sections\|flags\|section list')"
coffer info --json m.mcf | grep -o '"sections":\|"flags":\|"section_list":'
