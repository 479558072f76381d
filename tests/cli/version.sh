# Version, compiler, CPU level and libraries, for people and machines.
coffer --version | sed 's/ .*//'
coffer --version >a
coffer version >b
coffer -V >c
cmp a b && cmp a c && echo "the same"
coffer --version --json | python3 -c '
import json, sys
version = json.load(sys.stdin)
print(list(version))
assert version["version"].count(".") == 2
assert len(version["libraries"]) >= 4'
