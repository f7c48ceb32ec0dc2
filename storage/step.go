package storage

// Step is a piece of the work that a store does beside Apply.
type Step int

// The steps.
const (
	StepFlush Step = iota
	StepMerge
	StepMergeBeside
	StepPrepare
	StepHousekeep
	StepLook
	StepSync
	Steps
)

// Step does a piece of the work of the goroutines that Options.Stepped leaves out. worked says that
// windows became tables, or that tables were merged.
func (s *Store) Step(what Step) (worked bool) {
	if _, failed := s.state(); failed != nil || !s.begun {
		return false
	}
	switch what {
	case StepFlush:
		worked, _, _, _ = s.once(flushing, s.flushNext)
	case StepMerge:
		worked, _, _, _ = s.once(merging, s.mergeNext)
	case StepMergeBeside:
		worked, _, _, _ = s.once(mergingBeside, s.mergeBeside)
	case StepPrepare:
		s.prepare()
	case StepHousekeep:
		s.housekeeping()
	case StepLook:
		s.look()
	case StepSync:
		if s.opt.Sync.every > 0 {
			_ = s.sync()
		}
	}
	return worked
}
