package crash

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// addCommand appends a command of the Redis protocol to what send will write.
func (l *link) addCommand(args ...string) {
	l.out = fmt.Appendf(l.out, "*%d\r\n", len(args))
	for _, a := range args {
		l.out = append(l.out, replyBulk(a)...)
	}
}

// receiveReply reads one reply of the Redis protocol and returns it as it came.
func (l *link) receiveReply() (string, error) {
	var reply strings.Builder
	for left := 1; left > 0; left-- {
		head, err := l.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		reply.WriteString(head)
		n, err := strconv.Atoi(strings.TrimSuffix(head[1:], "\r\n"))
		switch {
		case head[0] == '+' || head[0] == '-':
		case err != nil:
			return "", fmt.Errorf("a reply has the line %q", head)
		case head[0] == '*':
			left += max(n, 0)
		case head[0] == '$' && n >= 0:
			if _, err := io.CopyN(&reply, l.in, int64(n)+2); err != nil {
				return "", err
			}
		}
	}
	return reply.String(), nil
}

// bulks returns the strings of a reply that is a string or an array of them; none of a null.
func bulks(reply string) []string {
	var all []string
	for reply != "" {
		head, rest, _ := strings.Cut(reply, "\r\n")
		n, _ := strconv.Atoi(head[1:])
		if reply = rest; head[0] == '$' && n >= 0 {
			all = append(all, rest[:n])
			reply = rest[n+2:]
		}
	}
	return all
}

// ask sends commands and returns their replies.
func (l *link) ask(commands [][]string) (replies []string, err error) {
	for _, args := range commands {
		l.addCommand(args...)
	}
	if err := l.send(); err != nil {
		return nil, err
	}
	for range commands {
		reply, err := l.receiveReply()
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}
