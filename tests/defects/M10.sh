# M10: info cuts long values and shows the first items of arrays; get prints the whole value.
export PYTHONPATH=$DATA/support PYTHONDONTWRITEBYTECODE=1
python3 - <<'END'
from models import *
gguf("m.gguf", {"general.architecture": ("string", "llama"), "tokenizer.chat_template": ("string", "{% x %}\n" * 35000),
                "general.name": ("string", "a name that fits"),
                "tokenizer.ggml.tokens": ("[string]", ["t%d" % i for i in range(32000)]),
                "tokenizer.ggml.scores": ("[f32]", [i / 2 for i in range(100)]),
                "some.list": ("[u32]", list(range(40))), "short.list": ("[i32]", [-1, 2, 3]),
                "long.items": ("[string]", ["x" * 500, "y"])},
     {"w": ("F32", [4], None)})
END
coffer info m.gguf
COLUMNS=60 coffer info m.gguf | grep chat_template
coffer info --json m.gguf | tr '{' '\n' | grep first
coffer get m.gguf tokenizer.chat_template | cksum
coffer get m.gguf tokenizer.ggml.tokens -o tokens.json
python3 -c 'import json; tokens = json.load(open("tokens.json")); print(len(tokens), tokens[0], tokens[-1])'
coffer get m.gguf some.list | tr -d '\n '
echo
coffer convert m.gguf m.mcf
coffer set m.mcf kv.general.license=mit >/dev/null
coffer get m.mcf kv.general.license
coffer get m.mcf general.license
coffer get m.mcf model_name
coffer get m.mcf kv.gguf.tokenizer.chat_template | cksum
coffer info m.mcf | awk '{ if (length($0) > longest) longest = length($0) } END { print (longest > 200 ? "long" : "short") }'
coffer get m.mcf kv.nothing
echo "exit $?"
