# Verbs with outputs that cannot be written (special_files.py has the table).
DATA=$DATA python3 "$DATA/cli/special_files.py" outputs
