# M7: a truncated shard is named with its sizes, and repair saves the complete tensors of safetensors and GGUF.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
import json, os
from models import *

def shards(folder, index):
    os.mkdir(folder)
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    safetensors(folder + "/" + names[0], {"a": ("F32", [4, 4]), "b": ("F32", [8])}, {"format": "pt"})
    safetensors(folder + "/" + names[1], {"c": ("F32", [4, 4]), "d": ("F32", [64])}, {"format": "pt"})
    if index:
        places = {"a": names[0], "b": names[0], "c": names[1], "d": names[1]}
        with open(folder + "/model.safetensors.index.json", "w") as out:
            json.dump({"metadata": {}, "weight_map": places}, out)
    return [folder + "/" + name for name in names]

def cut(path, count):
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - count)

cut(shards("broken", True)[1], 100)
cut(shards("plain", False)[1], 100)
os.remove(shards("missing", True)[1])
safetensors("whole.safetensors", {"a": ("F32", [4, 4])})
for name, length in (("length", 77), ("short", 1)):  # wrong lengths of the header
    safetensors(name + ".safetensors", {"a": ("F32", [4, 4]), "b": ("BF16", [8])}, {"format": "pt"})
    with open(name + ".safetensors", "r+b") as file:
        file.write(struct.pack("<Q", length))
safetensors("headless.safetensors", {"a": ("F32", [4, 4])})
cut("headless.safetensors", 100)
keys = {"general.architecture": ("string", "llama"), "tokenizer.ggml.tokens": ("[string]", ["a", "b"]),
        "general.alignment": ("u32", 64)}
tensors = {"x": ("F32", [4, 4], None), "y": ("F32", [4, 4], None), "z": ("F32", [64], None)}
gguf("model.gguf", {k: keys[k] for k in list(keys)[:2]}, tensors)
cut("model.gguf", 300)
END
run() {
    echo "$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
exec 2>&1
for verb in info check ls; do
    run $verb broken
done
run pack broken x.mcf

run repair broken
run ls broken.repaired.safetensors
run check broken.repaired.safetensors
run repair broken.repaired.safetensors
coffer get broken.repaired.safetensors c -o saved.npy
coffer get broken/model-00001-of-00002.safetensors a -o same.npy # has the same numbers
cmp saved.npy same.npy

run repair plain
run repair missing
run check missing
run repair broken/model-00002-of-00002.safetensors --in-place
ls broken
run repair --json broken/model-00002-of-00002.safetensors.orig -o again.safetensors
cmp again.safetensors broken/model-00002-of-00002.safetensors

run repair whole.safetensors
for name in length short headless; do
    run repair $name.safetensors
done
run ls length.repaired.safetensors

run check model.gguf
run repair model.gguf
run ls model.repaired.gguf
run check --full model.repaired.gguf
run info model.repaired.gguf
run repair model.repaired.gguf --from model.gguf
