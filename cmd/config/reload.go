package config

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/holdfast-queue/holdfast/cmd/daemon"
	"github.com/holdfast-queue/holdfast/cmd/terminal"
	"github.com/holdfast-queue/holdfast/netproto/access"
	"github.com/holdfast-queue/holdfast/netproto/admin"
	"github.com/holdfast-queue/holdfast/netproto/admin/page"
)

// Follow lets a server follow its config file and the other files that it reads, at each SIGHUP
// and when an operator asks, until ctx ends. args and c are what it begins with.
func (s *Sources) Follow(ctx context.Context, hangups <-chan os.Signal, args []string, c *daemon.Config, level *slog.LevelVar) {
	reloads, asked := make(chan daemon.Reload), make(chan func(admin.Reloaded, error))
	r := &reloader{sources: s, args: args, reloads: reloads, begun: s.values(), config: *c, level: level}
	inForce := s.settings()
	r.inForce.Store(&inForce)
	c.Settings = func() []page.Setting { return *r.inForce.Load() }
	log := c.Logger
	c.Reloads, c.AskReload = reloads, func(asking context.Context) (said admin.Reloaded, err error) {
		done := make(chan struct{})
		select {
		case asked <- func(s admin.Reloaded, e error) { said, err = s, e; close(done) }:
			<-done
		case <-ctx.Done():
			err = errStops
		case <-asking.Done():
			err = asking.Err()
		}
		return said, err
	}
	go func() { // ends with ctx
		for {
			tell := func(admin.Reloaded, error) {}
			select {
			case <-hangups:
			case tell = <-asked:
			case <-ctx.Done():
				return
			}
			daemon.Reloading(func() {
				said, err := r.reload(ctx)
				if err != nil && ctx.Err() == nil {
					log.Error("reload failed", "error", terminal.OneLine(err), "in_force", "the old settings")
				}
				tell(said, err)
			})
		}
	}()
}

var errStops = errors.New("the server stops")

// reloader is what a reload compares with. One goroutine uses it.
type reloader struct {
	sources *Sources
	args    []string
	reloads chan daemon.Reload
	begun   map[string]any // the values of the flags that the server began with
	config  daemon.Config  // what is in force
	level   *slog.LevelVar
	inForce atomic.Pointer[[]page.Setting] // which any goroutine may read
}

// reload reads all settings again and has the server take those that can change, or none.
func (r *reloader) reload(ctx context.Context) (said admin.Reloaded, err error) {
	if file := r.sources.file; file != nil {
		if err := daemon.Lasting(file.name); err != nil {
			return said, err
		}
	}
	again, flags, config, err := readServer(r.sources.env, r.args)
	if err != nil {
		return said, err
	}
	config.Logger, config.PlainUser = r.config.Logger, r.config.PlainUser
	done, certificates := make(chan error, 1), []string(nil)
	select {
	case r.reloads <- daemon.Reload{Config: config, Done: func(changed []string, err error) { certificates = changed; done <- err }}:
	case <-ctx.Done():
		return said, errStops
	}
	if err := <-done; err != nil {
		return said, err
	}
	level, before := flags.Level(), r.level.Level()
	said.Changed, said.Restart = append(changedKeys(&r.config, &config), certificates...), needRestart(r.begun, again.values())
	if before != level {
		said.Changed = append(said.Changed, "log-level")
	}
	r.config = config
	r.show(again.settings())
	r.level.Set(min(before, level)) // of both the one that shows more
	config.Logger.Info("reloaded", "changed", said.Changed)
	r.level.Set(level)
	if len(said.Restart) > 0 {
		config.Logger.Warn("settings have changed that need a restart", "keys", said.Restart)
	}
	return said, nil
}

// reloadable are the flags that a reload brings.
var reloadable = []string{"config", "log-level", "redis-password-file"}

// show updates the settings in force: what a reload brings is as it was read again.
func (r *reloader) show(again []page.Setting) {
	inForce := slices.Clone(*r.inForce.Load())
	for i, s := range inForce {
		if at := slices.IndexFunc(again, func(a page.Setting) bool { return a.Name == s.Name }); at >= 0 && slices.Contains(reloadable, s.Name) {
			inForce[i] = again[at]
		}
	}
	r.inForce.Store(&inForce)
}

// maxChanged is how many keys a line of the log names.
const maxChanged = 20

// changedKeys are the keys of users and queues that a reload has changed.
func changedKeys(before, after *daemon.Config) []string {
	keys := []string{}
	users := func(c *daemon.Config) map[string]access.User {
		all := make(map[string]access.User)
		for _, u := range c.Users {
			all[u.Name] = u
		}
		return all
	}
	if before.RedisPassword != after.RedisPassword {
		keys = append(keys, "redis-password-file")
	}
	keys = append(keys, differ("users", users(before), users(after))...)
	keys = append(keys, differ("queues", before.Queues, after.Queues)...)
	if len(keys) > maxChanged {
		keys = append(keys[:maxChanged], "and others")
	}
	return keys
}

// differ returns the keys of a table whose values are not the same.
func differ[V any](table string, before, after map[string]V) (keys []string) {
	all := maps.Clone(before)
	if all == nil {
		all = make(map[string]V)
	}
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		was, had := before[key]
		is, has := after[key]
		if had != has || !reflect.DeepEqual(was, is) {
			keys = append(keys, pathOf(table, key))
		}
	}
	return keys
}

// needRestart are the flags that have changed and that no reload brings.
func needRestart(before, after map[string]any) []string {
	keys := []string{}
	for _, name := range reloadable {
		delete(after, name)
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if !reflect.DeepEqual(before[key], after[key]) {
			keys = append(keys, key)
		}
	}
	return keys
}
