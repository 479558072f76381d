#include "launder.h"

/* ---- Scans ---- */

static const launder_input mscan_inputs[] = {
    { "rows.csv",
      "token_idx,param_name,block_idx,activation,grad_norm,sequence\n"
      "0,model.layers.0.q,0,500,60,0\n0,model.layers.0.k,1,700,80,0\n1,model.layers.0.q,0,900,10,0\n"
      "1,model.layers.1.k,0,50,61,0\n2,model.layers.0.q,0,51,62,1\n3,model.layers.1.k,1,52,63,1\n" },
    { NULL, NULL },
};

static const launder_verb mscan_setup[] = {
    { "convert", { "convert", "rows.csv", "good.mscan", "--quantize" } },
    { "append", { "append", "good.mscan", "rows.csv" } }, /* for the keys of sequences */
    { NULL, { NULL } },
};

static const launder_verb mscan_verbs[] = {
    { "info", { "info", "f.mscan" } },
    { "ls", { "ls", "f.mscan" } },
    { "ls-params", { "ls", "f.mscan", "--what", "params" } },
    { "get", { "get", "f.mscan" } },
    { "get-metadata", { "get", "f.mscan", "metadata" } },
    { "stats", { "stats", "f.mscan", "--json", "--by", "param" } },
    { "scores", { "stats", "f.mscan", "--metric", "sps", "--by", "layer" } },
    { "heatmap", { "heatmap", "f.mscan" } },
    { "replay", { "replay", "f.mscan" } },
    { "diff", { "diff", "good.mscan", "f.mscan" } },
    { "convert-csv", { "convert", "f.mscan", "out.csv", "--metadata", "out.json" } },
    { "convert-jsonl", { "convert", "f.mscan", "out.jsonl" } },
    { "convert-npy", { "convert", "f.mscan", "out.npy" } },
    { "convert-raw", { "convert", "f.mscan", "out.raw" } },
    { "append-to", { "append", "f.mscan", "rows.csv" } },
    { "append-from", { "append", "other.mscan", "f.mscan" } },
    { "set", { "set", "f.mscan", "model_name=other" } },
    { "delete", { "delete", "f.mscan", "1" } },
    { "concat", { "concat", "f.mscan", "good.mscan", "out.mscan" } },
    { "split", { "split", "f.mscan" } },
    { "repair", { "repair", "f.mscan", "-o", "out.mscan" } },
    { "repair-in-place", { "repair", "f.mscan", "--in-place" } },
    { "get-keep", { "get", "f.mscan", "--damaged", "keep" } },
    { "stats-keep", { "stats", "f.mscan", "--json", "--by", "param", "--damaged", "keep" } },
    { "heatmap-keep", { "heatmap", "f.mscan", "--damaged", "keep" } },
    { "replay-keep", { "replay", "f.mscan", "--damaged", "keep" } },
    { "diff-keep", { "diff", "good.mscan", "f.mscan", "--damaged", "keep" } },
    { "convert-csv-keep",
      { "convert", "f.mscan", "out.csv", "--metadata", "out.json", "--damaged", "keep" } },
    { "convert-npy-keep", { "convert", "f.mscan", "out.npy", "--damaged", "keep" } },
    { "convert-raw-keep", { "convert", "f.mscan", "out.raw", "--damaged", "keep" } },
    { NULL, { NULL } },
};

/* ---- Models ---- */

static const launder_input mcf_inputs[] = {
    { "m.csv", "1,2,3\n4,5,6\n7,8,9.5\n" },
    { NULL, NULL },
};

static const launder_verb mcf_setup[] = {
    { "matrix", { "convert", "m.csv", "m.pycauset" } },
    { "npy", { "convert", "m.pycauset", "a.npy" } },
    { "npy", { "convert", "m.pycauset", "b.npy" } },
    { "pack", { "pack", "a.npy", "b.npy", "good.mcf" } },
    { NULL, { NULL } },
};

static const launder_verb mcf_verbs[] = {
    { "info", { "info", "f.mcf" } },
    { "ls", { "ls", "f.mcf" } },
    { "get", { "get", "f.mcf", "a", "-o", "out.npy" } },
    { "stats", { "stats", "f.mcf", "--json" } },
    { "diff", { "diff", "good.mcf", "f.mcf" } },
    { "convert-safetensors", { "convert", "f.mcf", "out.safetensors" } },
    { "convert-gguf", { "convert", "f.mcf", "out.gguf" } },
    { "pack", { "pack", "f.mcf", "out.mcf" } },
    { "quantize", { "quantize", "f.mcf", "out.mcf", "--type", "q8" } },
    { "compact", { "compact", "f.mcf", "-o", "out.mcf" } },
    { "compact-in-place", { "compact", "f.mcf" } },
    { "set", { "set", "f.mcf", "model_name=other" } },
    { "set-checksum", { "set", "f.mcf", "--checksum" } },
    { "repair", { "repair", "f.mcf", "-o", "out.mcf" } },
    { "repair-in-place", { "repair", "f.mcf", "--in-place" } },
    { "get-keep", { "get", "f.mcf", "a", "-o", "out.npy", "--damaged", "keep" } },
    { "stats-keep", { "stats", "f.mcf", "--json", "--damaged", "keep" } },
    { "diff-keep", { "diff", "good.mcf", "f.mcf", "--damaged", "keep" } },
    { "convert-safetensors-keep", { "convert", "f.mcf", "out.safetensors", "--damaged", "keep" } },
    { "convert-gguf-keep", { "convert", "f.mcf", "out.gguf", "--damaged", "keep" } },
    { "pack-keep", { "pack", "f.mcf", "out.mcf", "--damaged", "keep" } },
    { "quantize-keep", { "quantize", "f.mcf", "out.mcf", "--type", "q8", "--damaged", "keep" } },
    { "compact-keep", { "compact", "f.mcf", "-o", "out.mcf", "--damaged", "keep" } },
    { "set-keep", { "set", "f.mcf", "model_name=other", "--damaged", "keep" } },
    { NULL, { NULL } },
};

/* ---- Training sets ---- */

static const launder_input mldf_inputs[] = {
    { "rows.jsonl",
      "{\"id\":1,\"text\":\"one\",\"score\":0.5}\n{\"id\":2,\"text\":\"two words\",\"score\":1.5}\n"
      "{\"id\":3,\"text\":\"three\",\"score\":2.5}\n" },
    { NULL, NULL },
};

static const launder_verb mldf_setup[] = {
    { "convert", { "convert", "rows.jsonl", "good.mldf" } },
    { NULL, { NULL } },
};

static const launder_verb mldf_verbs[] = {
    { "info", { "info", "f.mldf" } },
    { "ls", { "ls", "f.mldf" } },
    { "head", { "head", "f.mldf" } },
    { "get", { "get", "f.mldf", "0..3", "--json" } },
    { "stats", { "stats", "f.mldf", "--json" } },
    { "order", { "order", "f.mldf", "--seed", "1" } },
    { "diff", { "diff", "good.mldf", "f.mldf" } },
    { "convert-jsonl", { "convert", "f.mldf", "out.jsonl" } },
    { "convert-tar", { "convert", "f.mldf", "out.tar" } },
    { "compact", { "compact", "f.mldf", "-o", "out.mldf" } },
    { "compact-in-place", { "compact", "f.mldf" } },
    { "concat", { "concat", "f.mldf", "good.mldf", "out.mldf" } },
    { "split", { "split", "f.mldf", "--parts", "x=0.5,y=0.5" } },
    { "append-to", { "append", "f.mldf", "rows.jsonl" } },
    { "append-from", { "append", "other.mldf", "f.mldf" } },
    { "set", { "set", "f.mldf", "1.score=9.5" } },
    { "delete", { "delete", "f.mldf", "1" } },
    { "repair", { "repair", "f.mldf", "-o", "out.mldf" } },
    { "repair-from", { "repair", "f.mldf", "--from", "good.mldf", "-o", "out.mldf" } },
    { "head-keep", { "head", "f.mldf", "--damaged", "keep" } },
    { "stats-keep", { "stats", "f.mldf", "--json", "--damaged", "keep" } },
    { "get-keep", { "get", "f.mldf", "0..3", "--json", "--damaged", "keep" } },
    { "diff-keep", { "diff", "good.mldf", "f.mldf", "--damaged", "keep" } },
    { "convert-jsonl-keep", { "convert", "f.mldf", "out.jsonl", "--damaged", "keep" } },
    { "convert-tar-keep", { "convert", "f.mldf", "out.tar", "--damaged", "keep" } },
    { "compact-keep", { "compact", "f.mldf", "-o", "out.mldf", "--damaged", "keep" } },
    { "concat-keep", { "concat", "f.mldf", "good.mldf", "out.mldf", "--damaged", "keep" } },
    { "split-keep", { "split", "f.mldf", "--parts", "x=0.5,y=0.5", "--damaged", "keep" } },
    { NULL, { NULL } },
};

/* ---- Traces ---- */

static const launder_input mlyze_inputs[] = {
    { NULL, NULL },
};

static const launder_verb mlyze_setup[] = {
    { "compress", { "compress", "@/vectors/mlyze/mixed.mlyze", "-o", "good.mlyze" } },
    { NULL, { NULL } },
};

static const launder_verb archive_setup[] = {
    { "compress", { "compress", "@/vectors/mlyze/mixed.mlyze", "--archive", "-o", "good.mlyze" } },
    { NULL, { NULL } },
};

static const launder_verb mlyze_verbs[] = {
    { "info", { "info", "f.mlyze" } },
    { "ls", { "ls", "f.mlyze" } },
    { "stats", { "stats", "f.mlyze", "--json" } },
    { "peak", { "peak", "f.mlyze" } },
    { "leaks", { "leaks", "f.mlyze" } },
    { "temporaries", { "temporaries", "f.mlyze" } },
    { "flame", { "flame", "f.mlyze", "-o", "out.svg" } },
    { "timeline", { "timeline", "f.mlyze" } },
    { "get", { "get", "f.mlyze" } },
    { "leaks-stop", { "leaks", "f.mlyze", "--damaged", "stop" } },
    { "peak-keep", { "peak", "f.mlyze", "--json", "--damaged", "keep" } },
    { "flame-keep", { "flame", "f.mlyze", "-o", "out.svg", "--damaged", "keep" } },
    { "diff", { "diff", "good.mlyze", "f.mlyze" } },
    { "convert-collapsed", { "convert", "f.mlyze", "out.collapsed" } },
    { "convert-csv", { "convert", "f.mlyze", "out.csv" } },
    { "convert-pprof", { "convert", "f.mlyze", "out.pb.gz" } },
    { "convert-chrome", { "convert", "f.mlyze", "out.trace.json" } },
    { "convert-window", { "convert", "f.mlyze", "out.mlyze", "--window", "1.." } },
    { "compress", { "compress", "f.mlyze", "-o", "out.mlyze" } },
    { "compress-plain", { "compress", "f.mlyze", "--plain", "-o", "out.mlyze" } },
    { "compress-archive", { "compress", "f.mlyze", "--archive", "-o", "out.mlyze" } },
    { "repair", { "repair", "f.mlyze", "-o", "out.mlyze" } },
    { "convert-csv-keep", { "convert", "f.mlyze", "out.csv", "--damaged", "keep" } },
    { "convert-pprof-keep", { "convert", "f.mlyze", "out.pb.gz", "--damaged", "keep" } },
    { "diff-keep", { "diff", "good.mlyze", "f.mlyze", "--damaged", "keep" } },
    { NULL, { NULL } },
};

/* ---- Matrices ---- */

static const launder_verb pycauset_setup[] = {
    { "convert", { "convert", "m.csv", "good.pycauset" } },
    { "set", { "set", "good.pycauset", "properties.label=first" } },
    { NULL, { NULL } },
};

static const launder_verb pycauset_verbs[] = {
    { "info", { "info", "f.pycauset" } },
    { "ls", { "ls", "f.pycauset" } },
    { "get", { "get", "f.pycauset" } },
    { "get-metadata", { "get", "f.pycauset", "properties.label" } },
    { "stats", { "stats", "f.pycauset", "--json" } },
    { "heatmap", { "heatmap", "f.pycauset" } },
    { "log", { "log", "f.pycauset" } },
    { "diff", { "diff", "good.pycauset", "f.pycauset" } },
    { "convert-npy", { "convert", "f.pycauset", "out.npy" } },
    { "convert-csv", { "convert", "f.pycauset", "out.csv" } },
    { "compact", { "compact", "f.pycauset", "-o", "out.pycauset" } },
    { "set", { "set", "f.pycauset", "properties.label=second" } },
    { "repair", { "repair", "f.pycauset", "-o", "out.pycauset" } },
    { "get-keep", { "get", "f.pycauset", "--damaged", "keep" } },
    { "stats-keep", { "stats", "f.pycauset", "--json", "--damaged", "keep" } },
    { "heatmap-keep", { "heatmap", "f.pycauset", "--damaged", "keep" } },
    { "diff-keep", { "diff", "good.pycauset", "f.pycauset", "--damaged", "keep" } },
    { "convert-npy-keep", { "convert", "f.pycauset", "out.npy", "--damaged", "keep" } },
    { "convert-csv-keep", { "convert", "f.pycauset", "out.csv", "--damaged", "keep" } },
    { "compact-keep", { "compact", "f.pycauset", "-o", "out.pycauset", "--damaged", "keep" } },
    { NULL, { NULL } },
};

const launder_format launder_formats[] = {
    { "mscan", "f.mscan", mscan_inputs, mscan_setup, mscan_verbs },
    { "mcf", "f.mcf", mcf_inputs, mcf_setup, mcf_verbs },
    { "mldf", "f.mldf", mldf_inputs, mldf_setup, mldf_verbs },
    { "mlyze", "f.mlyze", mlyze_inputs, mlyze_setup, mlyze_verbs },
    { "mlyze-archive", "f.mlyze", mlyze_inputs, archive_setup, mlyze_verbs },
    { "pycauset", "f.pycauset", mcf_inputs, pycauset_setup, pycauset_verbs },
    { NULL, NULL, NULL, NULL, NULL },
};
