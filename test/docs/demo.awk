# Prints a runlog for a reader: the time since its first line, the atom, and, in words, what
# happened. A line is logfmt: key=value, and a value with blanks is quoted.

function fields(line,    key, value) {
	split("", f)
	while (match(line, /^ *[a-z_]+=/)) {
		key = substr(line, 1, RLENGTH - 1)
		sub(/^ */, "", key)
		line = substr(line, RLENGTH + 1)
		if (match(line, /^"([^"\\]|\\.)*"/))
			value = substr(line, 2, RLENGTH - 2)
		else
			match(line, /^[^ ]*/) && value = substr(line, 1, RLENGTH)
		f[key] = value
		line = substr(line, RLENGTH + 1)
	}
}

# seconds returns the seconds since midnight; the demo takes less than a day.
function seconds(time,    part) {
	split(substr(time, 12, 15), part, ":")
	return part[1] * 3600 + part[2] * 60 + part[3]
}

function story() {
	if (f["event"] == "acquire")  return "process " f["pid"] " takes the lock"
	if (f["event"] == "deny")     return "process " f["pid"] " is denied: " f["reason"]
	if (f["event"] == "expire")   return "process " f["pid"] " finds that " f["owner"] " has had its time"
	if (f["event"] == "signal")   return "process " f["pid"] " sends " f["signal"] " to " f["target"]
	if (f["event"] == "takeover") return "process " f["owner"] " is dead, for certain; its lock is replaced"
	if (f["event"] == "lost")     return "process " f["pid"] " would release, but its lock is being taken over"
	if (f["event"] == "release")  return "process " f["pid"] " is done after " sprintf("%.1f", f["duration"]) " s, status " f["status"]
	return f["event"] " " f["reason"]
}

{
	fields($0)
	at = seconds(f["time"])
	if (NR == 1) first = at
	since = at - first
	if (since < 0) since += 86400
	printf "      %5.1f s  %-8s %s\n", since, f["operand"], story()
}
