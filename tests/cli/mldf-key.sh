# Encrypted values: with the key, without it, with a wrong one, and with changed bytes.
head -c 32 /dev/zero | tr '\0' 'k' >key
head -c 32 /dev/zero | tr '\0' 'w' >wrong
key=$(head -c 32 /dev/zero | tr '\0' 'k' | od -An -v -tx1 | tr -d ' \n')
printf '%s\n' "$key" >hex
printf '{"text": "%s", "label": %d}\n' 'first secret' 1 'second secret' 2 'third secret' 3 >list.jsonl
coffer pack list.jsonl secret.mldf --encrypt --key-file key --page-size 4K
grep -c secret secret.mldf
coffer get secret.mldf 1.text --key-file key
coffer get secret.mldf 1.text --key-file hex
COFFER_KEY=$key coffer get secret.mldf 1.text
coffer get secret.mldf 1.label
echo "# without the key"
coffer get secret.mldf 1.text 2>&1
echo "exit $?"
coffer head secret.mldf
coffer get secret.mldf 1 --json
coffer stats secret.mldf --field label | tail -n 4
coffer check --full secret.mldf
echo "# with a wrong one"
coffer get secret.mldf 1.text --key-file wrong 2>&1
echo "exit $?"
coffer check --full secret.mldf --key-file wrong
echo "exit $?"
coffer head secret.mldf --key-file wrong 2>/dev/null
echo "exit $?"
echo "# numbers of samples are part of what is authenticated"
coffer delete secret.mldf 0 2>&1
echo "exit $?"
coffer delete secret.mldf 0 --key-file key
coffer get secret.mldf 0.text --key-file key
coffer set secret.mldf 1.text='changed secret' --key-file key
coffer get secret.mldf text --key-file key
coffer check --full secret.mldf --key-file key
coffer append secret.mldf list.jsonl --key-file key
coffer get secret.mldf text --key-file key
coffer concat secret.mldf secret.mldf twice.mldf 2>&1
echo "exit $?"
coffer concat secret.mldf secret.mldf twice.mldf --key-file key | cut -d , -f 1
coffer get twice.mldf 9.text --key-file key
coffer split secret.mldf --parts a=0.6,b=0.4 --key-file key | cut -d , -f 1
coffer get secret-b.mldf text --key-file key
echo "# a changed byte"
coffer get secret.mldf 2.text --stored >stored
python3 - <<'END'
whole, stored = bytearray(open("secret.mldf", "rb").read()), open("stored", "rb").read()
whole[whole.index(stored) + 30] ^= 1
open("changed.mldf", "wb").write(whole)
END
coffer get changed.mldf 2.text --key-file key >out 2>&1
echo "exit $?"
coffer check changed.mldf | grep -o "^[a-z].*\|sample.*"
coffer check --full changed.mldf >/dev/null
echo "exit $?"
echo "# convert"
coffer convert secret.mldf - --to jsonl --key-file key | head -n 1
COFFER_KEY=$key coffer convert secret.mldf - --to jsonl | tail -n 1
coffer convert secret.mldf out.jsonl 2>&1
echo "exit $?"
COFFER_KEY=$key coffer convert list.jsonl plain.mldf && coffer get plain.mldf 0.text
coffer diff secret.mldf twice.mldf --key-file key | head -n 1
