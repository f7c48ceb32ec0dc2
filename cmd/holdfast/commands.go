package main

import (
	"github.com/holdfast-queue/holdfast/cmd/ask"
	"github.com/holdfast-queue/holdfast/cmd/config"
	"github.com/holdfast-queue/holdfast/cmd/folder"
)

const description = `A durable priority queue: one binary, one data folder.

Where the help of a flag names an environment variable, that can stand in for the flag. The flag wins, and an empty variable counts as not set. A time has a unit: 500ms, 30s, 5m, 1h30m, 2d, 1w.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 nothing there, 4 the claim has ended, 5 something needs somebody (status). Of verify: 0 sound, 1 not sound, 2 not checked.

Examples:

    holdfast serve --data ./holdfast-data
    holdfast push jobs hello --priority 1
    holdfast pop jobs
    holdfast queues`

// commands is the command line: one field for each command. The parser shows what its Help returns
// below the usage line, and calls its Validate, if it has one, with the parsed flags before Run.
type commands struct {
	Context string `placeholder:"NAME" help:"Context: a name for the flags under Connection, in ~/.config/holdfast/contexts.toml."`

	Serve       serveCmd            `cmd:"" group:"Server" help:"Serve queues from a data folder."`
	Config      config.FileCommands `cmd:"" group:"Server" help:"Check a config file of the server, or show the settings in force."`
	Cluster     clusterCommands     `cmd:"" group:"Server" help:"Several machines of which one takes over when another is gone."`
	Hash        config.Hash         `cmd:"" group:"Server" help:"Make the hash of a password, for the users in a config file."`
	Status      ask.Status          `cmd:"" group:"Server" help:"Print how a running server is."`
	Health      ask.Health          `cmd:"" group:"Server" help:"Tell whether a running server is ready."`
	Reload      ask.Reload          `cmd:"" group:"Server" help:"Have a running server read its settings again."`
	Connections ask.Connections     `cmd:"" group:"Server" help:"List the connections of Redis clients."`
	Users       ask.Users           `cmd:"" group:"Server" help:"List the users and their rights."`
	Doctor      folder.Doctor       `cmd:"" group:"Server" help:"Say what to change on this machine before a server runs in earnest."`
	Bench       ask.Bench           `cmd:"" group:"Server" help:"Measure a running server."`
	Metrics     metricsCmd          `cmd:"" group:"Server" help:"Print rules for alerts."`

	Push      ask.Push      `cmd:"" aliases:"publish" group:"Packets" help:"Push a packet and wait until it is on disk."`
	Pop       ask.Pop       `cmd:"" group:"Packets" help:"Pop the best packet of a queue."`
	Subscribe ask.Subscribe `cmd:"" group:"Packets" help:"Print packets of queues as they come."`
	Claim     ask.Claim     `cmd:"" group:"Packets" help:"Claim a packet for the time of a lease."`
	Work      ask.Work      `cmd:"" group:"Packets" help:"Run a command for each packet of a queue."`
	Ack       ask.Ack       `cmd:"" group:"Packets" help:"Acknowledge a claimed packet: the work is done."`
	Nack      ask.Nack      `cmd:"" group:"Packets" help:"Return a claimed packet: the work failed."`
	Extend    ask.Extend    `cmd:"" group:"Packets" help:"Renew the lease of a claimed packet."`

	Queues    ask.Queues    `cmd:"" group:"Queues" help:"List the queues."`
	Stats     ask.Stats     `cmd:"" group:"Queues" help:"Print the figures of queues."`
	Peek      ask.Peek      `cmd:"" group:"Queues" help:"Print the packets that come next."`
	List      ask.List      `cmd:"" group:"Queues" help:"List the packets of a queue."`
	Show      ask.Show      `cmd:"" group:"Queues" help:"Print all that is known of a packet."`
	Tail      ask.Tail      `cmd:"" group:"Queues" help:"Print what happens in a queue as it happens."`
	Consumers ask.Consumers `cmd:"" group:"Queues" help:"List who claims packets, or waits for them."`
	Shares    ask.Shares    `cmd:"" group:"Queues" help:"List the shares of a queue: what waits, and who has how many turns."`
	Producers ask.Producers `cmd:"" group:"Queues" help:"List who pushed packets."`

	Purge   ask.Purge   `cmd:"" group:"Queues" help:"Delete packets of a queue."`
	Harvest ask.Harvest `cmd:"" group:"Queues" help:"End claims: their packets are ready again."`
	Redrive ask.Redrive `cmd:"" aliases:"retry" group:"Queues" help:"Make dead packets ready again."`
	Move    ask.Move    `cmd:"" group:"Queues" help:"Move packets to another queue."`
	Cancel  ask.Cancel  `cmd:"" group:"Queues" help:"Have packets not be worked on, claimed ones too."`
	Delete  ask.Delete  `cmd:"" aliases:"rm" group:"Queues" help:"Delete packets by their ids."`
	Prio    ask.Prio    `cmd:"" group:"Queues" help:"Change the priority of a packet."`
	Run     ask.RunNow  `cmd:"" group:"Queues" help:"Have a delayed packet be ready now, or at another time."`
	Set     ask.Set     `cmd:"" group:"Queues" help:"Change settings of a queue."`
	Unset   ask.Unset   `cmd:"" group:"Queues" help:"Give settings of a queue their defaults."`
	Get     ask.Get     `cmd:"" group:"Queues" help:"Print the settings of a queue."`
	Share   ask.Share   `cmd:"" group:"Queues" help:"Set the weight, limits and rest of one share of a queue."`
	Pause   ask.Pause   `cmd:"" group:"Queues" help:"Have a queue take and give no packets for a while."`
	Resume  ask.Resume  `cmd:"" group:"Queues" help:"End a pause."`
	Close   ask.Close   `cmd:"" group:"Queues" help:"Have a queue take no more packets, for ever."`
	Drop    ask.Drop    `cmd:"" group:"Queues" help:"Delete a queue with its packets and settings."`

	Backup  folder.Backup  `cmd:"" group:"Data" help:"Copy the packets of a running server to a file."`
	Dump    folder.Dump    `cmd:"" group:"Data" help:"Write out the packets of a data folder, without a server."`
	Load    folder.Load    `cmd:"" group:"Data" help:"Make a data folder from a dump or a backup."`
	Restore folder.Restore `cmd:"" group:"Data" help:"Make a data folder from a backup of files."`
	Verify  folder.Verify  `cmd:"" group:"Data" help:"Check that a data folder or a backup is sound, or say what is wrong with it."`
	Compact folder.Compact `cmd:"" group:"Data" help:"Make a data folder as small as possible."`

	Contexts config.ContextCommands `cmd:"" name:"context" group:"Server" help:"List or print contexts: names for servers and the ways to them."`

	Barbershop ask.Barbershop `cmd:"" group:"Data" help:"Import or export the items of a running server."`

	TLS config.TLSCommands `cmd:"" name:"tls" group:"Server" help:"Make certificates."`

	Completion completionCmd `cmd:"" group:"Server" help:"Print code that completes command lines in a shell."`
	Man        manCmd        `cmd:"" group:"Server" help:"Print the manual page."`
	Version    versionCmd    `cmd:"" group:"Server" help:"Print the version of the program, as --version does."`
	Help       helpCmd       `cmd:"" group:"Server" help:"Explain a command, as its --help does."`
}
