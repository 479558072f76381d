# On a terminal that is too narrow, names lose what they have in common first, and nothing runs over the edge.
on_terminal() {
    python3 -c '
import os, pty, sys
def read(fd):
    return os.read(fd, 4096)
pty.spawn(sys.argv[1:], read)' "$@" </dev/null | sed -e 's/\x1b\[[0-9;?]*[a-zA-Z]//g' -e 's/\r//'
}
cat >meta.json <<'END'
{"model_name":"m","id_to_param_name_map":{"0":"model.layers.3.self_attn.q_proj.weight",
"1":"model.layers.3.self_attn.v_proj.weight"},"sequences":[{"sequence_id":0,"num_tokens":2}]}
END
printf 'token_idx,param_id,block_idx,activation,grad_norm\n0,0,0,10,3\n0,1,0,20,4\n1,0,0,30,5\n' >rows.csv
coffer convert rows.csv scan.mscan --metadata meta.json
export TERM=xterm
COLUMNS=80 on_terminal coffer stats scan.mscan --by param
COLUMNS=40 on_terminal coffer heatmap scan.mscan --rows param
COLUMNS=40 on_terminal coffer replay scan.mscan --delay 0 |
    python3 -c 'import sys; print([line for line in sys.stdin if len(line.rstrip("\n")) > 40])'
