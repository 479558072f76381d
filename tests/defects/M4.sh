# M4: a conversion reports what it decodes, converts or cannot make loadable; quantized tensors stay quantized where the
# other format can store their numbers.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
from models import *
floats_2d = ("F32", [8, 256], floats([8, 256]))
safetensors("model.safetensors", {"token_embd.weight": floats_2d, "blk.0.ffn.weight": ("F32", [4, 96]),
                                  "norm.weight": ("F32", [16]), "bias": ("F16", [4])})
safetensors("long.safetensors", {"x" * 63: ("F32", [2]), "y" * 64: ("F32", [2])})
gguf("llama.gguf", {"general.architecture": ("string", "llama"), "general.file_type": ("u32", 7),
                    "tokenizer.ggml.model": ("string", "llama")},
     {"token_embd.weight": ("Q8_0", [2, 64], q8_0(4)), "a.weight": ("Q4_0", [2, 32], q4_0(2)),
      "b.weight": ("Q4_0", [2, 32], q4_0(2, 0)), "c.weight": ("Q4_K", [1, 256], bytes(range(100, 244))),
      "norm.weight": ("F32", [4], None)})
END
same() { # the numbers are the same, whatever the types
    coffer diff --json "$1" "$2" | sed 's/.*\("compared":[0-9]*,"identical":[0-9]*\).*/\1/'
}
types() {
    coffer ls "$1" | awk 'NF > 4 && NR > 1 && $2 != "in" { print "    " $1, $2 }'
}
run() {
    echo "$ coffer $*"
    coffer "$@"
    echo "exit $?"
}
exec 2>&1

for type in k6 k4 k3 k2 int8; do
    coffer quantize model.safetensors $type.mcf --type $type >/dev/null
    run convert $type.mcf $type.gguf
    types $type.gguf
    same $type.mcf $type.gguf
    coffer convert $type.gguf again.mcf -f
    types again.mcf | grep embd
done
run convert k4.mcf k4.safetensors
run convert llama.gguf llama.safetensors
run convert --json k4.mcf half.gguf --cast f16 | sed 's/"size":[0-9]*,//'
types half.gguf

# Blocks of GGUF in MCF.
run convert llama.gguf llama.mcf
types llama.mcf
same llama.gguf llama.mcf
run check --full llama.mcf
run convert llama.mcf back.gguf
same llama.gguf back.gguf
coffer pack llama.gguf packed.mcf >/dev/null
run convert llama.gguf plain.mcf --cast f32
types plain.mcf

# One-dimensional tensors stay in float32.
run quantize model.safetensors half.mcf --type f16
run quantize model.safetensors norm.mcf --type f16 --type 'norm*=f16'
run convert half.mcf half.gguf -f
run convert half.mcf raw.gguf --as-is
types raw.gguf

# Names that llama.cpp refuses.
coffer convert long.safetensors long.mcf
run convert long.mcf long.gguf
ls long.gguf
run convert long.mcf long.gguf --as-is
