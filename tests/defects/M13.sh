# M13: quantize says when it writes subnormal scales, which mantle reads as 0, and --portable-scales avoids them.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
from models import *
tiny = floats([4, 320], 1e-5)
safetensors("tiny.safetensors", {"w": ("F32", [4, 320], tiny)})
safetensors("usual.safetensors", {"w": ("F32", [4, 320], floats([4, 320]))})
gguf("tiny.gguf", {"general.architecture": ("string", "llama")},
     {"w": ("Q8_0", [1, 64], 2 * (struct.pack("<H", 3) + bytes(range(32))))})
END
exec 2>&1
# The number of subnormal scales of a tensor whose scales come first.
count() {
    coffer get "$1" w --as raw -o raw -f
    python3 -c 'import struct, sys
data = open("raw", "rb").read()
scales = struct.unpack("<%dH" % int(sys.argv[1]), data[:2 * int(sys.argv[1])])
print("subnormal:", sum(0 < s & 0x7fff < 0x400 for s in scales), "zero:", scales.count(0))' "$2"
}
for type in q8 q4 k6 k4 k3 k2; do
    scales=40
    case $type in k*) scales=8 ;; esac
    coffer quantize usual.safetensors usual.mcf --type $type -f >/dev/null
    coffer quantize tiny.safetensors $type.mcf --type $type | sed -n 2p
    count $type.mcf $scales
    coffer quantize tiny.safetensors $type.mcf --type $type -f --portable-scales | sed -n 2p
    count $type.mcf $scales
    coffer check --full $type.mcf
done
coffer quantize --json --dry-run tiny.safetensors --type q4 | sed 's/.*\("small_scales.*\)/\1/'
coffer quantize --dry-run tiny.safetensors --type q4
coffer convert tiny.gguf tiny.mcf
