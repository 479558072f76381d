# M8: pack blames the right file, and packs a folder whose model is unambiguous whatever its name.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
import os
from models import *
for folder in ("empty", "weights", "gguf", "two", "shards", "gap"):
    os.mkdir(folder)
safetensors("weights/weights.safetensors", {"a": ("F32", [2, 4])})
gguf("gguf/model.gguf", {"general.architecture": ("string", "llama")}, {"a": ("F32", [2, 4], None)})
for name in ("a", "b"):
    safetensors("two/%s.safetensors" % name, {name: ("F32", [2])})
for i in (1, 2, 3):
    safetensors("shards/x-%05d-of-00003.safetensors" % i, {"a%d" % i: ("F32", [2])})
    if i != 2:
        safetensors("gap/x-%05d-of-00003.safetensors" % i, {"a%d" % i: ("F32", [2])})
safetensors("broken.safetensors", {"z": ("F32", [2])})
with open("broken.safetensors", "r+b") as file:
    file.truncate(os.path.getsize("broken.safetensors") - 1)
safetensors("secret.safetensors", {"s": ("F32", [2])})
os.chmod("secret.safetensors", 0)
END
# As a user who cannot read everything, also where the tests run as root.
user() {
    python3 -c 'import os, sys
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}
pack() {
    echo "$ coffer pack $*"
    coffer pack "$@" x.mcf -f | sed 's/, sections.*//'
}
exec 2>&1
for folder in empty weights gguf two shards gap; do
    pack $folder
    [ -e x.mcf ] && coffer ls x.mcf --csv | cut -d, -f1
    rm -f x.mcf
done
coffer info shards
coffer info two
pack weights broken.safetensors
pack weights missing.safetensors
pack weights empty
chmod 755 .
echo "$ coffer info secret.safetensors"
user coffer info secret.safetensors
echo "$ coffer pack weights secret.safetensors"
user coffer pack weights secret.safetensors x.mcf
