# Completion of bloomery in bash: source <(bloomery completion bash)
_bloomery() {
    local line directive='' candidates=()
    while IFS= read -r line; do
        case $line in
            :*) directive=${line#:} ;;
            *) candidates+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=(${candidates[@]+"${candidates[@]}"})
    if [[ ${#COMPREPLY[@]} -eq 0 && $directive = 0 ]]; then
        compopt -o default
    fi
}
complete -F _bloomery bloomery kubectl-bloomery
