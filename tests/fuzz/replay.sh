#!/bin/bash
# SPDX-License-Identifier: MIT
# What once broke a reader, and a good and a torn input of each kind, are read without a crash.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99

export TMPDIR=$work
for folder in "$source_dir"/tests/fuzz/cases/*/; do
	name=$(basename "$folder")
	for file in "$folder"*; do
		timeout -k 5 60 "$build/tests/fuzz/fuzz_$name" "$file" >out 2>&1
		check "$name/${file##*/}: $(tail -n 5 out)" 0 $?
	done
done

# ... and by the commands, which may refuse, but say why
for file in "$source_dir"/tests/fuzz/cases/results/*; do
	rm -rf run merged
	mkdir run
	cp "$file" run/run-0001.jsonl
	for command in "export run --format json" "merge run -o merged" "compare run run" "report run" \
		"resume run --dry-run"; do
		# shellcheck disable=SC2086 # words
		timeout -k 5 60 "$causal" $command >out 2>err
		status=$?
		check "causal $command, ${file##*/}: $status, $(tail -n 5 err)" 0 $((status > 2))
		((status == 0)) || at_least "causal $command, ${file##*/}: says why" 1 "$(wc -l <err)"
	done
done
finish
