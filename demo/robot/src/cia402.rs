//! The state machine of drives, IEC 61800-7-201 (CiA 402-2): states, and the words that carry
//! them.

/// Bits of the status word (object 0x6041) that name the state.
const MASK_SHORT: u16 = 0x4f;
const MASK_LONG: u16 = 0x6f;

/// Control words (object 0x6040), one for each command.
pub mod control {
    /// To "ready to switch on".
    pub const SHUTDOWN: u16 = 0x06;
    /// To "switched on".
    pub const SWITCH_ON: u16 = 0x07;
    /// To "operation enabled".
    pub const ENABLE_OPERATION: u16 = 0x0f;
    /// Power off, brakes on.
    pub const DISABLE_VOLTAGE: u16 = 0x00;
    /// Stop at the quick-stop ramp.
    pub const QUICK_STOP: u16 = 0x02;
    /// Leave "fault".
    pub const FAULT_RESET: u16 = 0x80;
}

/// Mode of operation 8 (object 0x6060): cyclic synchronous position.
pub const CSP: i8 = 8;

/// States of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Just powered.
    NotReady,
    /// Power may not be switched on yet.
    SwitchOnDisabled,
    /// Power may be switched on.
    ReadyToSwitchOn,
    /// Power on, not following.
    SwitchedOn,
    /// Following its target.
    OperationEnabled,
    /// Stopping or stopped at the quick-stop ramp.
    QuickStopActive,
    /// Stopping because of a fault.
    FaultReactionActive,
    /// A fault; power off.
    Fault,
}

impl State {
    /// The status word that says it.
    pub fn status(self) -> u16 {
        match self {
            Self::NotReady => 0x00,
            Self::SwitchOnDisabled => 0x40,
            Self::ReadyToSwitchOn => 0x21,
            Self::SwitchedOn => 0x23,
            Self::OperationEnabled => 0x27,
            Self::QuickStopActive => 0x07,
            Self::FaultReactionActive => 0x0f,
            Self::Fault => 0x08,
        }
    }

    /// The state that a status word says; `None` for one that no state has.
    pub fn from_status(word: u16) -> Option<Self> {
        match word & MASK_SHORT {
            0x00 => return Some(Self::NotReady),
            0x40 => return Some(Self::SwitchOnDisabled),
            0x0f => return Some(Self::FaultReactionActive),
            0x08 => return Some(Self::Fault),
            _ => {}
        }
        match word & MASK_LONG {
            0x21 => Some(Self::ReadyToSwitchOn),
            0x23 => Some(Self::SwitchedOn),
            0x27 => Some(Self::OperationEnabled),
            0x07 => Some(Self::QuickStopActive),
            _ => None,
        }
    }

    /// The state after a control word; `rising_reset` says that its fault-reset bit just rose.
    ///
    /// "Quick stop active" is left by "disable voltage" only: the optional transition 16 back to
    /// "operation enabled" is not there, so a late enable does not move a stopped drive.
    pub fn after(self, word: u16, rising_reset: bool) -> Self {
        use State::*;
        let enable_voltage = word & 0x02 != 0;
        let no_quick_stop = word & 0x04 != 0;
        match self {
            NotReady | FaultReactionActive => self,
            Fault if rising_reset => SwitchOnDisabled,
            Fault => Fault,
            _ if !enable_voltage => SwitchOnDisabled,
            QuickStopActive => QuickStopActive,
            OperationEnabled if !no_quick_stop => QuickStopActive,
            _ if !no_quick_stop => SwitchOnDisabled,
            SwitchOnDisabled if word & 0x87 == 0x06 => ReadyToSwitchOn,
            ReadyToSwitchOn if word & 0x87 == 0x07 => SwitchedOn,
            SwitchedOn | OperationEnabled if word & 0x8f == 0x0f => OperationEnabled,
            SwitchedOn | OperationEnabled if word & 0x87 == 0x06 => ReadyToSwitchOn,
            OperationEnabled if word & 0x8f == 0x07 => SwitchedOn,
            state => state,
        }
    }
}

/// What to command a drive that says `status`, on its way to "operation enabled".
pub fn towards_operation(status: u16) -> u16 {
    match State::from_status(status) {
        Some(State::SwitchOnDisabled) => control::SHUTDOWN,
        Some(State::ReadyToSwitchOn) => control::SWITCH_ON,
        Some(State::SwitchedOn | State::OperationEnabled) => control::ENABLE_OPERATION,
        Some(State::Fault) => control::FAULT_RESET,
        _ => control::DISABLE_VOLTAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::*;

    const ALL: [State; 8] = [
        NotReady,
        SwitchOnDisabled,
        ReadyToSwitchOn,
        SwitchedOn,
        OperationEnabled,
        QuickStopActive,
        FaultReactionActive,
        Fault,
    ];

    #[test]
    fn status_words_and_states_are_one_to_one() {
        for state in ALL {
            assert_eq!(State::from_status(state.status()), Some(state));
            // Bits beside the mask are the manufacturer's.
            assert_eq!(State::from_status(state.status() | 0x0610), Some(state));
        }
    }

    #[test]
    fn a_drive_is_led_to_operation_in_order() {
        let mut state = Fault;
        let mut seen = vec![state];
        for _ in 0..6 {
            let word = towards_operation(state.status());
            state = state.after(word, word == control::FAULT_RESET);
            seen.push(state);
        }
        let want = [Fault, SwitchOnDisabled, ReadyToSwitchOn, SwitchedOn, OperationEnabled];
        assert_eq!(seen[..5], want);
        assert_eq!(state, OperationEnabled);
    }

    #[test]
    fn a_stopped_drive_is_not_moved_by_a_late_enable() {
        let stopped = OperationEnabled.after(control::QUICK_STOP, false);
        assert_eq!(stopped, QuickStopActive);
        for word in [control::ENABLE_OPERATION, control::SWITCH_ON, control::SHUTDOWN] {
            assert_eq!(stopped.after(word, false), QuickStopActive);
        }
        let off = stopped.after(control::DISABLE_VOLTAGE, false);
        assert_eq!(off, SwitchOnDisabled);
        assert_eq!(off.after(control::ENABLE_OPERATION, false), SwitchOnDisabled);
    }
}
