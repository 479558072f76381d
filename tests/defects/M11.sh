# M11: GGUF to MCF to GGUF gives the same keys, and MCF to GGUF to MCF the same ModelInfo.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
from models import *
keys = {"general.architecture": ("string", "llama"), "general.file_type": ("u32", 0),
        "llama.context_length": ("u32", 64), "llama.rope.freq_base": ("f32", 10000.0),
        "llama.rope.scaling.type": ("string", "none"), "tokenizer.ggml.model": ("string", "llama"),
        "tokenizer.ggml.tokens": ("[string]", ["<s>", "</s>", "a", "b", "c"])}
tensors = {"token_embd.weight": ("F32", [4, 32], None), "norm.weight": ("F32", [32], None)}
gguf("noname.gguf", keys, tensors)
gguf("named.gguf", {**keys, "general.name": ("string", "n"), "llama.vocab_size": ("u32", 5)}, tensors)
# A vocabulary size of 0 and a file type that contradicts the tensors are kept as well.
gguf("odd.gguf", {**keys, "llama.vocab_size": ("u32", 0), "general.file_type": ("u32", 7)}, tensors)
gguf("q8.gguf", {**keys, "general.file_type": ("u32", 7), "general.quantization_version": ("u32", 2)},
     {"token_embd.weight": ("Q8_0", [2, 64], q8_0(4))})
gguf("k.gguf", {**keys, "general.file_type": ("u32", 15)},
     {"token_embd.weight": ("Q4_K", [1, 256], bytes(range(100, 244)))})
END
exec 2>&1
for name in noname named odd q8; do
    coffer convert $name.gguf $name.mcf
    coffer convert $name.mcf back.gguf -f
    coffer diff $name.gguf back.gguf
done

# Decoded blocks: the file type follows.
coffer convert k.gguf k.mcf
coffer convert k.mcf back.gguf -f
coffer diff k.gguf back.gguf --json | tr '{' '\n' | grep file_type
coffer quantize k.mcf q8.mcf --type q8 -f >/dev/null
coffer convert q8.mcf back.gguf -f
coffer info --json back.gguf | tr ',' '\n' | grep file_type

# A field that was changed since is written.
coffer set noname.mcf model_name=mine vocab_size=7 context_length=128 >/dev/null
coffer convert noname.mcf back.gguf -f
coffer diff noname.gguf back.gguf --json | tr '{' '\n' | grep path | sed 's/\].*//'

# The type of rope has one name, and comes back.
for rope in none standard linear; do
    coffer set named.mcf rope_type=$rope rope_freq_base=10000 >/dev/null
    coffer convert named.mcf rope.gguf -f
    coffer convert rope.gguf rope.mcf -f
    coffer diff named.mcf rope.mcf
done
coffer set named.mcf rope_freq_base=0 rope_type=standard >/dev/null
coffer convert named.mcf rope.gguf -f
coffer convert rope.gguf again.mcf -f
coffer diff named.mcf again.mcf
coffer diff named.mcf rope.mcf --json | tr '{' '\n' | grep rope
coffer info named.mcf --json | tr ',' '\n' | grep rope
