package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-queue/holdfast/cmd/certs"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
)

// TLSCommands works on certificates.
type TLSCommands struct {
	Init  tlsInitCmd  `cmd:"" help:"Make a small CA, and certificates for a server and its clients."`
	Renew tlsRenewCmd `cmd:"" help:"Renew the certificate of a server, or those of clients."`
}

func (c *TLSCommands) Help() string {
	return `Certificates of any CA will do. Those that "holdfast tls init" makes are for a first try, and for servers that nobody else certifies.

Examples:

    holdfast tls init certs
    holdfast tls init certs --client worker
    holdfast tls renew certs`
}

// certFolder is a folder with a CA and its certificates.
type certFolder struct {
	Dir  string `arg:"" help:"Folder of the files."`
	Days int    `default:"365" range:"1 3650" placeholder:"N" help:"How long the certificates hold, in days; the CA's holds 10 years (default ${default})."`
}

// tlsInitCmd makes a CA and its certificates.
type tlsInitCmd struct {
	certFolder
	Client []string `placeholder:"NAME" sep:"none" help:"Name of a client to certify. May be given more than once (default: operator, if the folder is new)."`
	Host   []string `placeholder:"NAME|IP" sep:"none" help:"Name or IP address by which clients reach the server, besides localhost, 127.0.0.1 and ::1. May be given more than once (default: the name of this machine)."`
	Nodes  []string `placeholder:"NAME=HOST" help:"Make the folders of a cell's nodes instead, which have an authority of their own."`
}

func (c *tlsInitCmd) Help() string {
	return `Makes a folder with DIR/ca.pem, server.pem and operator.pem, and beside each its private key: ca-key.pem, server-key.pem and operator-key.pem, which only you may read. Nothing is overwritten. In a folder that has a CA it adds what is missing: the clients that are named, and a certificate for the server when there is none. "holdfast tls renew" renews them.

With --nodes it makes a folder DIR/NAME for each node of a cell: node.pem, node-key.pem and ca.pem, which is that of an authority of the cell's own. Whom this certifies is a node: keep DIR/cell-ca-key.pem away from nodes, too.

Who holds ca-key.pem can make certificates: keep it away from servers and clients. Where the server has users, a client with a certificate is the one whose certificates name it.

Examples:

    holdfast tls init certs
    holdfast tls init certs --host queue.example.com --host 192.0.2.7 --days 90
    holdfast tls init certs --client worker --client producer
    holdfast tls init cell --nodes a=10.0.0.1,b=10.0.0.2,c=10.0.0.3`
}

// checkClients refuses names that no client can have.
func checkClients(names []string) error {
	for i, name := range names {
		if !isName.MatchString(name) || slices.Contains([]string{"ca", "server", cellCA}, name) || strings.HasSuffix(name, "-key") {
			return fmt.Errorf("--client %q: expected a name of 1 to 64 letters, digits and _.-, which is not ca, cell-ca or server and does not end in -key", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("--client %q is given twice", name)
		}
	}
	return nil
}

func (c *tlsInitCmd) Validate() error {
	if err := checkClients(c.Client); err != nil {
		return err
	}
	if len(c.Nodes) > 0 && len(c.Client)+len(c.Host) > 0 {
		return errors.New("--nodes has an authority of its own: make the certificates of clients and servers in another run")
	}
	if _, err := ParseNodes(c.Nodes); err != nil {
		return err
	}
	for _, host := range c.Host {
		if !isHost(host) {
			return fmt.Errorf("--host %q: expected the name of a machine or an IP address, without a port", host)
		}
	}
	return nil
}

// issue is a certificate that is to be made.
type issue struct {
	name string // of its files, without their ends
	make func() (certs.Pair, error)
}

func (c *tlsInitCmd) Run(p *terminal.Process) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("make folder %s: %w", c.Dir, terminal.Pathless(err))
	}
	if len(c.Nodes) > 0 {
		return c.runCell(p)
	}
	span := c.span()
	ca, all, err := c.authority("ca", "Holdfast")
	if err != nil {
		return err
	}
	isNew := len(all) > 0
	noServer, err := c.missing("server")
	switch {
	case err != nil:
		return err
	case noServer:
		all = append(all, issue{"server", func() (certs.Pair, error) { return ca.Server(c.hosts(), span) }})
	case len(c.Host) > 0:
		return fmt.Errorf("%s is there already: delete it and its key to have one made for another --host; \"holdfast tls renew\" keeps the names", c.file("server.pem"))
	}
	clients := c.Client
	if isNew && len(clients) == 0 {
		clients = []string{"operator"}
	}
	for _, name := range clients {
		if all, err = c.add(all, name, func() (certs.Pair, error) { return ca.Client(name, span) }); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("%s holds a CA and the certificate of a server: add a client with --client NAME", c.Dir)
	}
	for _, i := range all {
		if err := c.issue(p, i); err != nil {
			return err
		}
	}
	return c.explain(p, clients)
}

// authority is the CA of the folder whose files have a name; one that is to be made is issued
// first.
func (c *tlsInitCmd) authority(name, of string) (ca *certs.Authority, first []issue, err error) {
	isNew, err := c.missing(name)
	switch {
	case err != nil:
		return nil, nil, err
	case !isNew:
		ca, err = c.load(name)
		return ca, nil, err
	}
	ca, err = certs.New(of+" CA of "+machine(), certs.Span{From: c.span().From, Until: time.Now().AddDate(10, 0, 0)})
	return ca, []issue{{name, func() (certs.Pair, error) { return ca.Pair, nil }}}, err
}

// cellCA names the files of a cell's authority. It is another one than that of the server's
// clients: whom it has certified is a node.
const cellCA = "cell-ca"

// nodePair names the files of a node, in the folder of that.
func nodePair(node string) string { return filepath.Join(node, "node") }

// runCell makes the folder of each node, and the cell's authority if there is none.
func (c *tlsInitCmd) runCell(p *terminal.Process) error {
	ca, all, err := c.authority(cellCA, "Holdfast cell")
	if err != nil {
		return err
	}
	nodes, _ := ParseNodes(c.Nodes) // Validate has
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		host, _, _ := net.SplitHostPort(nodes[name])
		if all, err = c.add(all, nodePair(name), func() (certs.Pair, error) { return ca.Node(name, host, c.span()) }); err != nil {
			return err
		}
	}
	for _, i := range all {
		if err := c.issue(p, i); err != nil {
			return err
		}
	}
	for name := range nodes {
		if err := writeNew(c.file(filepath.Join(name, "ca.pem")), ca.Cert, 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(p.Stdout, "\nEach folder in %s is for the node of its name, which takes it by --cluster-tls, and %s for none.\n", c.Dir, c.file(cellCA+"-key.pem"))
	return err
}

// add adds a pair that is to be made, and is not there.
func (c *tlsInitCmd) add(all []issue, name string, make func() (certs.Pair, error)) ([]issue, error) {
	absent, err := c.missing(name)
	if err == nil && !absent {
		err = fmt.Errorf("%s is there already: nothing is overwritten; delete it and its key, or take another name", c.file(name+".pem"))
	}
	return append(all, issue{name, make}), err
}

// span is how long a certificate that is made now holds.
func (c *certFolder) span() certs.Span {
	now := time.Now().Truncate(time.Second)
	return certs.Span{From: now.Add(-time.Hour), Until: now.AddDate(0, 0, c.Days)} // clocks differ
}

func (c *certFolder) file(name string) string { return filepath.Join(c.Dir, name) }

// missing says whether there are no files of a name; an error if there is one of the two.
func (c *certFolder) missing(name string) (bool, error) {
	cert, key := c.file(name+".pem"), c.file(name+"-key.pem")
	_, noCert := os.Lstat(cert)
	_, noKey := os.Lstat(key)
	switch {
	case noCert == nil && noKey == nil:
		return false, nil
	case errors.Is(noCert, fs.ErrNotExist) && errors.Is(noKey, fs.ErrNotExist):
		return true, nil
	case noCert == nil && errors.Is(noKey, fs.ErrNotExist):
		return false, fmt.Errorf("%s is there, and %s is not: bring the key back, or take another folder", cert, key)
	case noKey == nil && errors.Is(noCert, fs.ErrNotExist):
		return false, fmt.Errorf("%s is there, and %s is not: bring the certificate back, or delete the key", key, cert)
	}
	return false, errors.Join(noCert, noKey)
}

func (c *certFolder) load(name string) (*certs.Authority, error) {
	cert, err := os.ReadFile(c.file(name + ".pem"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(c.file(name + "-key.pem"))
	if err != nil {
		return nil, err
	}
	ca, err := certs.Load(certs.Pair{Cert: cert, Key: key})
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", c.file(name+".pem"), c.file(name+"-key.pem"), err)
	}
	return ca, nil
}

// hosts are the names and addresses of the server.
func (c *tlsInitCmd) hosts() []string {
	all := c.Host
	if len(all) == 0 {
		all = []string{machine()}
	}
	for _, own := range []string{"localhost", "127.0.0.1", "::1"} {
		if !slices.Contains(all, own) {
			all = append(all, own)
		}
	}
	return all
}

// machine is the name of this machine.
func machine() string {
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "localhost"
}

// issue makes a certificate, writes it, behind its key, and names the files.
func (c *tlsInitCmd) issue(p *terminal.Process, i issue) error {
	pair, err := i.make()
	if err != nil {
		return err
	}
	dir := filepath.Dir(c.file(i.name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder %s: %w", dir, terminal.Pathless(err))
	}
	if err := writeNew(c.file(i.name+"-key.pem"), pair.Key, 0o600); err != nil {
		return err
	}
	if err := writeNew(c.file(i.name+".pem"), pair.Cert, 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s\n%s\n", c.file(i.name+".pem"), c.file(i.name+"-key.pem"))
	return err
}

// writeNew writes a file that does not exist.
func writeNew(name string, text []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, terminal.Pathless(err))
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(name)
		return fmt.Errorf("write %s: %w", name, terminal.Pathless(err))
	}
	return nil
}

// explain says how the files are used.
func (c *tlsInitCmd) explain(p *terminal.Process, clients []string) error {
	text := fmt.Sprintf("\nServe with them:\n\n    holdfast serve --tls-cert %s --tls-key %s --tls-client-ca %s\n",
		shellWord(c.file("server.pem")), shellWord(c.file("server-key.pem")), shellWord(c.file("ca.pem")))
	for i, name := range clients {
		if i == 0 {
			text += "\nA client takes ca.pem, its certificate and its key:\n\n"
		}
		ca, cert, key := shellWord(c.file("ca.pem")), shellWord(c.file(name+".pem")), shellWord(c.file(name+"-key.pem"))
		text += fmt.Sprintf("    holdfast status --tls-ca %s --tls-cert %s --tls-key %s\n    redis-cli --tls --cacert %[1]s --cert %[2]s --key %[3]s PING\n", ca, cert, key)
	}
	if len(clients) > 0 {
		text += fmt.Sprintf("\nWhere the server has users, its config file says who that is:\n\n    [users.%[1]q]\n    certificates = [%[1]q]\n", clients[0])
	}
	_, err := fmt.Fprint(p.Stdout, text)
	return err
}

// shellWord is a word as a shell takes it.
func shellWord(word string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_./-]+$`).MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
