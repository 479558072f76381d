# Every byte of a file of another program is read or reported (check_mutations.py has the table).
python3 "$DATA/cli/check_mutations.py"
