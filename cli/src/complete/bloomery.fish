# Completion of bloomery in fish: bloomery completion fish | source
function __bloomery_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete -- $words[2..] 2>/dev/null)
    string match --invert --regex '^:' -- $found
    if test "$found[-1]" = :0
        __fish_complete_path (commandline -ct)
    end
end
complete --command bloomery --no-files --arguments '(__bloomery_complete)'
complete --command kubectl-bloomery --no-files --arguments '(__bloomery_complete)'
