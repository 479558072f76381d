# M5: diff compares the configuration and tokenizer of models key by key, in folders and MCF files.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
import json, os
from models import *
config = {"model_type": "llama", "hidden_size": 64, "rope_scaling": {"type": "linear", "factor": 2.0}, "layers": [1, 2]}
tokenizer = {"model": {"vocab": {"a": 0, "b": 1, "c.d": 2}}}
def model(folder, config, tokenizer, **files):
    os.mkdir(folder)
    safetensors(folder + "/model.safetensors", {"w": ("F32", [4, 4])})
    for name, value in (("config.json", config), ("tokenizer.json", tokenizer)):
        with open(folder + "/" + name, "w") as out:
            json.dump(value, out)
    for name, text in files.items():
        with open(folder + "/" + name + ".txt", "w") as out:
            out.write(text)
model("a", config, tokenizer, merges="a b\n", notes="x")
model("same", dict(reversed(config.items())), tokenizer, merges="a b\n", notes="x")  # in another order
changed = {**config, "hidden_size": 128, "rope_scaling": {"type": "linear", "factor": 4.0}, "new": True}
model("b", changed, {"model": {"vocab": {"a": 0, "b": 7}}}, merges="b a\n")
END
exec 2>&1
changes() {
    echo "$ coffer diff $*"
    coffer diff "$@" | sed -n '/^  metadata$/,/^  only in a/p'
}
coffer diff a same
changes a b
for folder in a same b; do
    coffer pack $folder $folder.mcf --name m >/dev/null
done
coffer diff a.mcf same.mcf
changes a.mcf b.mcf
coffer diff --json a.mcf b.mcf | tr '{' '\n' | grep factor
# A file alone has no files next to it.
coffer diff a/model.safetensors b/model.safetensors
# JSON that is damaged is compared by its bytes.
printf '{"model_type": ' >b/config.json
changes a b
