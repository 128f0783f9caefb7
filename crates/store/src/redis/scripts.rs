//! Registry of the Lua scripts: which keys and arguments each one takes, and which prelude files it needs.
//!
//! The text of a script is assembled once per process: names for its keys, the constants it uses, its prelude
//! files, names for its arguments, and its own file. So Lua never repeats a position or a constant of Rust.
//! Comment lines are left out, because every `EVAL` sends the text.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::OnceLock;

use ::redis::{Cmd, ToRedisArgs, cmd};
use daegi_domain::entry_flow::MAX_ENDS;
use daegi_domain::lane::share::STRIDE;
use daegi_domain::liveness::{PAGE_NUMBERS, SLICE_MS};
use daegi_domain::rate::{BUCKET_MS, BUCKETS};
use daegi_domain::visit::OPEN_DIMENSIONS;
use daegi_domain::{MAX_CLOCK_LAG_MS, Number, Policy};

use super::keys::{LANE_KEYS, LINE_KEYS};
use crate::limits;

/// The constants that Lua shares with Rust. A script declares those that it uses.
fn constants() -> [(&'static str, u64); 24] {
    let default_absence_seconds = Policy::default().absence_limit_seconds().unwrap_or(0);
    [
        ("MAX_NUMBER", Number::MAX.0),
        ("NUMBERS_PER_MS", Number::PER_MS),
        ("MAX_CLOCK_LAG_MS", MAX_CLOCK_LAG_MS),
        ("LOSS_GAP", limits::LOSS_GAP),
        ("LOBBY_NUMBERS_PER_MS", limits::LOBBY_NUMBERS_PER_MS),
        ("RECLAIM_WINDOW_MS", limits::RECLAIM_WINDOW_MS),
        ("MAX_LOST_GENERATIONS", limits::MAX_LOST_GENERATIONS as u64),
        ("ENDED_RETENTION_MS", limits::ENDED_RETENTION_MS),
        ("WAITING_END_RETENTION_MS", limits::WAITING_END_RETENTION_MS),
        ("HELD_MS", limits::HELD_MS),
        ("MAX_COHORT", limits::MAX_COHORT),
        ("ENTRY_GROUP", u64::from(limits::MAX_USERS_PER_CALL)),
        ("STRIDE", STRIDE),
        ("LANES", LINE_KEYS.len() as u64 + 1),
        ("LANE_KEYS", LANE_KEYS.len() as u64),
        ("SLICE_MS", SLICE_MS),
        ("PAGE_NUMBERS", PAGE_NUMBERS),
        ("LIVENESS_SLICES", limits::LIVENESS_SLICES),
        ("DEFAULT_ABSENCE_LIMIT_MS", u64::from(default_absence_seconds) * 1000),
        ("RATE_BUCKET_MS", BUCKET_MS),
        ("RATE_BUCKETS", BUCKETS),
        ("ENTRY_FLOW_ENDS", MAX_ENDS),
        ("FIRST_OPEN", OPEN_DIMENSIONS[0] as u64),
        ("LAST_OPEN", OPEN_DIMENSIONS[1] as u64),
    ]
}

/// One script, and the SHA-1 by which a server that has loaded it runs it.
pub(crate) struct Script {
    code: String,
    hash: String,
    keys: Positions,
    args: Positions,
}

/// A call of a script that is being built.
pub(crate) struct ScriptInvocation<'a> {
    script: &'a Script,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

/// What a script is assembled from.
struct Source {
    /// The prelude files after `common`, each below those whose functions it uses.
    prelude: &'static [&'static str],
    /// `line`, or the names of the keys.
    keys: &'static str,
    /// The names of the arguments; `: int` converts to a number.
    args: &'static str,
    body: &'static str,
}

/// A list of names for `KEYS` or `ARGV`. A last name with `..` stands for all further positions; in Lua its
/// upper-case name is the first of them.
struct Positions {
    names: Vec<(&'static str, bool)>,
    rest: Option<String>,
}

macro_rules! registry {
    ($($name:ident [$($prelude:ident)*] $keys:tt ($($args:tt)*);)*) => {
        /// All scripts.
        pub(crate) struct Scripts {
            $(pub(super) $name: Script,)*
        }

        /// The sources of all scripts by name.
        const SOURCES: [(&str, Source); [$(stringify!($name)),*].len()] = [$((stringify!($name), Source {
            prelude: &[$(include_str!(concat!("scripts/prelude/", stringify!($prelude), ".lua"))),*],
            keys: stringify!($keys),
            args: stringify!($($args)*),
            body: include_str!(concat!("scripts/", stringify!($name), ".lua")),
        }),)*];

        impl Scripts {
            fn new() -> Self {
                let [$($name),*] = SOURCES.each_ref().map(|(_, source)| Script::new(source));
                Self { $($name),* }
            }

            pub(super) fn all(&self) -> impl Iterator<Item = &Script> {
                [$(&self.$name,)*].into_iter()
            }
        }
    };
}

registry! {
    // Items.
    put_items [generation control] (ITEMS, ACTIVE, GENERATION, REPLAYS, CHANGED, item_keys..)
        (answer_items, now: int, generation, new_id, needs_log, kept_words: int, default_words: int, words..);
    remove_item [item restart control] line (id, now: int, version, base, offset, read_at);
    set_policy [item opening_ahead control] line (revision, now, replaces_opening, fields..);
    set_paused [item control] line (paused, now);
    reset [item restart control] line (now);
    purge [] line (id);
    // Replay of the item log.
    replay_state [] (REPLAYS) (log);
    begin_replay [] (REPLAYS) (log);
    complete_replay [] (REPLAYS) (log);
    // Tickets.
    join [generation item opening tickets liveness returning outbox admission recovery lane lanes] line
        (now: int, pod_quota, recovery_hold: int, store_refusal, max_waiting: int, leave_cost: int,
         leave_window: int, invitations, users..);
    resolve [generation item opening tickets liveness returning outbox recovery lane lanes elsewhere] line
        (now: int, recovery_hold: int, generation, new_id, tickets..);
    restore_entry [generation item opening tickets outbox recovery lane lanes elsewhere] line
        (now: int, recovery_hold: int, user, number: int, admitted_at: int, expires_at: int, generation, new_id);
    end_ticket [generation item opening tickets outbox recovery lane] line
        (now: int, user, number: int, reason, which, recovery_hold: int, generation, new_id, leave_cost: int,
         leave_window: int);
    note_ended [generation item opening tickets outbox recovery lane] line (now: int, ended_tickets..);
    use_handover [] (HANDOVER) (issued_at, ttl_ms);
    mark_seen [item liveness] line (pages..);
    snapshot [tickets] line (base, read: int, max_changes: int);
    counts [item tickets] line ();
    // The leader's rounds.
    admit [fence item opening tickets liveness outbox admission lanes] line
        (epoch, quota: int, max_admissions: int, now: int, max_users: int, first_slice: int, min_interval: int,
         seed, rank_from: int, ranked..);
    expire [generation fence item opening opening_ahead tickets outbox recovery entry_flow] line
        (epoch, now: int, max_users: int, id, recovery_hold: int);
    sweep [fence item opening tickets liveness outbox admission] line
        (epoch, now: int, cursor, max_users: int, first_slice: int);
    // The pace.
    set_pace [fence item] line (epoch, state, quota);
    put_origin_report [] (ORIGIN) (pod, report, oldest: int, max_pods: int, ttl_ms);
    // Openings.
    freeze_cohort [generation fence item opening opening_steps tickets outbox recovery control] line (epoch, now: int);
    fix_root [fence item opening opening_steps control] line (epoch, now: int, root);
    put_beacon [item opening control] line (now: int, round, signature);
    open_line [fence item opening opening_steps control] line (epoch, now: int, root, beacon, seed);
    close_line [fence item opening opening_steps control] line (epoch, now: int);
    outbox_ack [] (OUTBOX, OUTBOX_EVENTS, OUTBOX_ADMISSIONS) (batches..);
    // Settings that survive a data loss.
    item_control [tickets] line ();
    checkpoint_control [fence item opening control] line (epoch, now: int, interval: int);
    controls_published [] (CHANGED) (published..);
    restore_control [generation item opening tickets outbox recovery restart] line
        (id, control_version: int, now: int, recovery_hold: int, generation, new_id, is_removed, version, reveal,
         seed, line_words: int, product_words: int, words..);
    // Settings and partitions.
    init_settings [settings] (SETTINGS) (partitions, token_count_to_move, tick_ms);
    set_settings [settings] (SETTINGS) (fields..);
    copy_settings [] (SETTINGS_COPY) (revision, token_count_to_move);
    publish_waiting [] (WAITING_COUNT) (tickets, ttl_ms);
    open_partition [] (GENERATION) (new_id);
    declare_loss [] (GENERATION) (new_id, now);
    // Leadership.
    next_epoch [] (EPOCH) (floor: int);
    fence [] (FENCE) (epoch: int);
    acquire_lock [] (LOCK) (holder, ttl_ms);
    renew_lock [] (LOCK) (holder, ttl_ms);
    publish_leader [] (LEADER) (epoch: int, name, since);
    // Administration.
    append_audit [] (AUDIT_LOG) (entry, max_entries: int);
    put_operator [] (OPERATORS) (name, record, max_operators: int);
    put_heartbeat [] (HEARTBEATS) (process, payload, now, oldest: int);
    // Block and allow lists.
    change_access [] (ACCESS_RULES, ACCESS_SETTINGS, ACCESS_CHANGES)
        (now, max_rules: int, max_events: int, contact_url, removals: int, words..);
    append_access_events [] (ACCESS_LOG) (max_events: int, events..);
    // Signals of tickets.
    add_signals [] (SIGNALS) (now: int, retention: int, max_tickets: int, tickets..);
    // History.
    append_hour [fence] (FENCE, MINUTES) (epoch, hour, length: int, record, ttl_ms);
    add_visits [] (VISIT_MINUTES, VISIT_HOURS)
        (minute, hour, max_labels: int, minutes_ttl_ms, hours_ttl_ms, counts..);
}

/// The scripts, assembled and hashed once per process.
pub(crate) fn scripts() -> &'static Scripts {
    static SCRIPTS: OnceLock<Scripts> = OnceLock::new();
    SCRIPTS.get_or_init(Scripts::new)
}

/// The text of one script as servers get it; `None` if there is no such script. For tests of raw scripts.
#[doc(hidden)]
pub fn script_text(name: &str) -> Option<String> {
    SOURCES.iter().find(|(known, _)| *known == name).map(|(_, source)| source.assemble())
}

impl Source {
    fn assemble(&self) -> String {
        let common = include_str!("scripts/prelude/common.lua");
        let prelude = code(&[&[common], self.prelude].concat());
        let body = code(&[self.body]);
        let all = [prelude.as_str(), body.as_str()].concat();
        let mut used: HashSet<&str> = words(&all).collect();
        if used.contains("select_lane") {
            used.extend(LANE_KEYS);
        }
        if used.contains("select_lane") || (used.contains("SLICES") && self.keys == "line") {
            used.extend(["LANES", "LANE_KEYS", "LANE_COUNT"]);
        }
        let mut text = String::new();
        for (name, value) in constants().iter().filter(|(name, _)| used.contains(name)) {
            let _ = writeln!(text, "local {name} = {value}");
        }
        let args = self.args();
        self.keys().declare("KEYS", &used, &mut text);
        args.declare("ARGV", &used, &mut text);
        if used.contains("select_lane") {
            // The keys of lanes begin at LANES.
            let names = LANE_KEYS.join(", ");
            let _ = writeln!(
                text,
                "local function select_lane(lane)\n  local at = LANES + lane * LANE_KEYS\n  \
                {names} = unpack(KEYS, at, at + LANE_KEYS - 1)\nend"
            );
        }
        if used.contains("SLICES") && self.keys == "line" {
            text.push_str("local SLICES = LANES + LANE_COUNT * LANE_KEYS\n");
        }
        text.push_str(&prelude);
        text.push_str(&body);
        text
    }

    fn keys(&self) -> Positions {
        if self.keys == "line" {
            let names = LINE_KEYS.iter().map(|(name, _)| (*name, false)).collect();
            return Positions { names, rest: Some("FURTHER_KEYS".into()) };
        }
        Positions::parse(self.keys.trim_matches(['(', ')']))
    }

    /// Returns the arguments. Those of a line script begin with the lane of its keys, and with how many lanes
    /// follow in KEYS: all of the item, or none.
    fn args(&self) -> Positions {
        let mut args = Positions::parse(self.args);
        if self.keys == "line" {
            args.names.splice(0..0, [("LANE", true), ("LANE_COUNT", true)]);
        }
        args
    }
}

impl Positions {
    fn parse(list: &'static str) -> Self {
        let (mut names, mut rest) = (Vec::new(), None);
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if let Some(name) = name.strip_suffix("..") {
                rest = Some(name.trim().to_uppercase());
            } else {
                names.push(match name.split_once(':') {
                    Some((name, _int)) => (name.trim(), true),
                    None => (name, false),
                });
            }
        }
        Self { names, rest }
    }

    /// Returns whether a call may pass this many values.
    fn fit(&self, count: usize) -> bool {
        count == self.names.len() || (self.rest.is_some() && count > self.names.len())
    }

    /// Writes a `local` for each name that is used.
    fn declare(&self, table: &str, used: &HashSet<&str>, text: &mut String) {
        for (position, (name, is_int)) in
            (1..).zip(&self.names).filter(|(_, (name, _))| used.contains(name))
        {
            let _ = match is_int {
                true => writeln!(text, "local {name} = tonumber({table}[{position}])"),
                false => writeln!(text, "local {name} = {table}[{position}]"),
            };
        }
        if let Some(rest) = self.rest.as_ref().filter(|rest| used.contains(rest.as_str())) {
            let _ = writeln!(text, "local {rest} = {}", self.names.len() + 1);
        }
    }
}

/// The lines of these files without comment lines and empty ones.
fn code(files: &[&str]) -> String {
    let lines = files.iter().flat_map(|file| file.lines());
    let is_code = |line: &&str| !line.is_empty() && !line.trim_start().starts_with("--");
    lines.filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

impl Script {
    fn new(source: &Source) -> Self {
        let code = source.assemble();
        let hash = ::redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash, keys: source.keys(), args: source.args() }
    }

    pub(super) fn invocation(&self) -> ScriptInvocation<'_> {
        ScriptInvocation { script: self, keys: Vec::new(), args: Vec::new() }
    }

    /// Loads the script into a server, so that the first call does not have to send the text.
    pub(super) fn load(&self) -> Cmd {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(&self.code);
        load
    }
}

impl ScriptInvocation<'_> {
    pub(super) fn key<T: ToRedisArgs>(&mut self, key: T) -> &mut Self {
        key.write_redis_args(&mut self.keys);
        self
    }

    pub(super) fn arg<T: ToRedisArgs>(&mut self, arg: T) -> &mut Self {
        arg.write_redis_args(&mut self.args);
        self
    }

    /// Returns the first key. It determines the node, because all keys share a slot.
    pub(super) fn first_key(&self) -> Option<&[u8]> {
        self.keys.first().map(Vec::as_slice)
    }

    /// The call for a server that has loaded the script.
    pub(super) fn evalsha(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// The call for a server that has not loaded the script: it was restarted, or was a replica. The server
    /// keeps the script from then on. `SCRIPT LOAD` first would be a second call that can fail, and on a
    /// cluster only this node needs the script.
    pub(super) fn eval(&self) -> Cmd {
        self.command("EVAL", &self.script.code)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        debug_assert!(self.script.keys.fit(self.keys.len()), "wrong number of keys");
        debug_assert!(self.script.args.fit(self.args.len()), "wrong number of arguments");
        let words = self.keys.iter().chain(&self.args);
        let length = words.map(Vec::len).sum::<usize>() + script.len() + 16;
        let mut command = Cmd::with_capacity(3 + self.keys.len() + self.args.len(), length);
        command.arg(name).arg(script).arg(self.keys.len()).arg(&*self.keys).arg(&*self.args);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANGUAGE: &str = "and break do else elseif end false for function if in local nil not or repeat return \
        then true until while KEYS ARGV redis string table math bit unpack tonumber ipairs pairs _";

    /// The code without the contents of its strings.
    fn without_strings(code: &str) -> String {
        code.split('\'').step_by(2).collect::<Vec<_>>().join("''")
    }

    /// The names that a line declares: of a function and its parameters, of locals, of a loop.
    fn declared(line: &str) -> Vec<&str> {
        let line = line.trim_start();
        let from = |start: &str| line.find(start).map(|at| &line[at + start.len()..]);
        let list = match from("function ").or_else(|| from("function(")) {
            Some(function) => function.split(')').next(),
            None => from("local ").or_else(|| from("for ")).map(|list| {
                list.split(" = ").next().unwrap_or(list).split(" in ").next().unwrap_or(list)
            }),
        };
        list.map(|list| words(list).collect()).unwrap_or_default()
    }

    /// Names that are used before they are declared. Lua would read a global variable, which Redis rejects.
    fn undeclared(code: &str) -> Vec<String> {
        let mut known: HashSet<&str> = LANGUAGE.split_whitespace().collect();
        let mut missing = Vec::new();
        for line in code.lines() {
            known.extend(declared(line));
            let is_field = |word: &str| {
                let at = word.as_ptr() as usize - line.as_ptr() as usize;
                line[..at].ends_with('.')
            };
            let is_name = |word: &&str| !word.starts_with(|c: char| c.is_ascii_digit());
            let names = words(line).filter(|word| !is_field(word)).filter(is_name);
            missing.extend(names.filter(|name| !known.contains(name)).map(str::to_owned));
        }
        missing
    }

    #[test]
    fn scripts_use_only_names_that_their_prelude_declares() {
        for (name, source) in &SOURCES {
            let code = without_strings(&source.assemble());
            assert_eq!(undeclared(&code), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn scripts_list_only_prelude_files_that_they_need() {
        for (name, source) in &SOURCES {
            for (at, file) in source.prelude.iter().enumerate() {
                let others = source.prelude.iter().enumerate().filter(|(other, _)| *other != at);
                let mut rest: Vec<&str> = others.map(|(_, file)| *file).collect();
                rest.push(source.body);
                let rest = without_strings(&code(&rest));
                let used: HashSet<&str> = words(&rest).collect();
                let first = file.lines().next().unwrap_or_default();
                let defined =
                    file.lines().filter(|line| line.starts_with("local ")).flat_map(declared);
                assert!(defined.into_iter().any(|name| used.contains(name)), "{name}: {first}");
            }
        }
    }

    /// The arguments that the head of a script names, in order; `true` for numbers.
    fn documented(body: &str) -> Vec<(String, bool)> {
        let head = body.lines().take_while(|line| line.starts_with("--"));
        let head: String = head.map(|line| line.trim_start_matches("--")).collect();
        let list = head.split("ARGV:").nth(1).and_then(|rest| rest.split("Reply:").next());
        let list = list.unwrap_or_default().trim();
        let mut depth = 0;
        let split = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == '·' && depth == 0
        };
        let args = list.split(split).map(str::trim).filter(|arg| *arg != "none");
        args.map(|arg| {
            let (name, note) = arg.split_once('(').unwrap_or((arg, ""));
            (name.trim().to_owned(), note.starts_with("int"))
        })
        .collect()
    }

    #[test]
    fn the_head_of_a_script_names_its_arguments_in_order() {
        for (name, source) in &SOURCES {
            let positions = Positions::parse(source.args);
            let mut args: Vec<_> = positions
                .names
                .iter()
                .map(|(name, is_int)| ((*name).to_owned(), *is_int))
                .collect();
            args.extend(positions.rest.map(|rest| (format!("{}..", rest.to_lowercase()), false)));
            assert_eq!(documented(source.body), args, "{name}");
        }
    }
}
