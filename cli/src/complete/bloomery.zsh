#compdef bloomery kubectl-bloomery
# Completion of bloomery in zsh: source <(bloomery completion zsh)
_bloomery() {
    local line directive
    local -a candidates
    for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :*) directive=${line#:} ;;
            *$'\t'*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
            ?*) candidates+=("${line//:/\\:}") ;;
        esac
    done
    if (( $#candidates )); then
        _describe bloomery candidates
    elif [[ $directive = 0 ]]; then
        _files
    fi
}
# In a directory of fpath this file is the function itself.
if [[ $funcstack[1] = _bloomery ]]; then
    _bloomery "$@"
else
    compdef _bloomery bloomery kubectl-bloomery
fi
