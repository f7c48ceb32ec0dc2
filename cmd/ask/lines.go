package ask

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// window is the most bytes of lines that are sent before their replies are read. A server holds
// the replies to all of them for a client that does not read yet.
const window = 1 << 20

// readLine reads a line with its end; if it has far more bytes than longest, the error is
// bufio.ErrBufferFull. The line is valid until the next read.
func readLine(in *bufio.Reader, longest int) (line []byte, err error) {
	line, err = in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
	}
	for errors.Is(err, bufio.ErrBufferFull) && len(line) <= longest {
		var part []byte
		part, err = in.ReadSlice('\n')
		line = append(line, part...)
	}
	return line, err
}

// readLines waits for a line, and takes with it the whole lines that are there already, without
// their ends. An error says why there is none behind them: bufio.ErrBufferFull if it is too long.
func readLines(in *bufio.Reader, most, longest int) (lines [][]byte, err error) {
	for more := true; more && err == nil && len(lines) < most; {
		var line []byte
		line, err = readLine(in, longest)
		if err == nil || errors.Is(err, io.EOF) && len(line) > 0 {
			lines = append(lines, bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))))
		}
		ready, _ := in.Peek(in.Buffered())
		more = bytes.IndexByte(ready, '\n') >= 0
	}
	return lines, err
}
