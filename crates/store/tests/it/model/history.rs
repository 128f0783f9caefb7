use daegi_domain::{
    AdaptivePace, Branding, ChallengePolicy, Guard, Invitation, Lane, LaneName, LanePolicy, Mode,
    OnRejoin, PacePolicy, Policy,
};
use proptest::prelude::*;

/// An event of a product service and its position in the log.
#[derive(Debug, Clone)]
pub(crate) struct UpdateSpec {
    pub(crate) item: usize,
    pub(crate) gone: bool,
    pub(crate) stock: u32,
    pub(crate) version: Option<u64>,
    pub(crate) offset: u64,
    pub(crate) at: u64,
}

/// An opening; times are milliseconds from now.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) opens_in: Option<i64>,
    pub(crate) lobby_in: Option<i64>,
    pub(crate) closes_in: Option<i64>,
    pub(crate) draw: bool,
    /// The round of the beacon of a draw.
    pub(crate) beacon: Option<u64>,
    /// Whether the opening ends instead.
    pub(crate) removed: bool,
    /// Whether it replaces an opening, or changes the times of one.
    pub(crate) replaces: bool,
}

/// One operation. Items, users and tickets are indices into the lists of the harness.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Put {
        item: usize,
        stock: u32,
        enabled: bool,
        version: Option<u64>,
        policy: Option<Policy>,
    },
    Remove {
        item: usize,
    },
    ItemUpdates {
        updates: Vec<UpdateSpec>,
    },
    Replay {
        log: usize,
        step: usize,
    },
    Policy {
        item: usize,
        policy: Policy,
        outdated: bool,
    },
    Pause {
        item: usize,
        paused: bool,
    },
    Reset {
        item: usize,
    },
    Join {
        item: usize,
        users: Vec<usize>,
    },
    JoinLane {
        item: usize,
        lane: Lane,
        joins: Vec<(usize, Option<Invitation>)>,
    },
    JoinMany {
        item: usize,
        from: usize,
        count: usize,
    },
    JoinManyLane {
        item: usize,
        lane: Lane,
        from: usize,
        count: usize,
    },
    Snapshot {
        item: usize,
        lane: Lane,
    },
    Mark {
        item: usize,
        tickets: Vec<usize>,
    },
    MarkAll {
        item: usize,
        every: usize,
    },
    Resolve {
        item: usize,
        tickets: Vec<usize>,
        off: u64,
    },
    Leave {
        item: usize,
        ticket: usize,
        off: u64,
    },
    Complete {
        item: usize,
        ticket: usize,
        cancelled: bool,
    },
    Reenter {
        item: usize,
        ticket: usize,
    },
    Replicate,
    LoseNewest,
    LoseEverything,
    FreshStart,
    DeclareLoss,
    NoteEnded {
        item: usize,
        tickets: Vec<usize>,
        completed: bool,
    },
    BeginTerm,
    Admit {
        item: usize,
        quota: u32,
        min_interval: u64,
        outbox_max: u64,
        stale: bool,
    },
    Expire {
        item: usize,
        lane: Lane,
        stale: bool,
    },
    Sweep {
        item: usize,
        lane: Lane,
        stale: bool,
    },
    Pace {
        item: usize,
        quota: u32,
        stale: bool,
    },
    OriginReport {
        item: usize,
        pod: usize,
        /// How old the report is.
        age: u64,
    },
    Plan {
        item: usize,
        plan: Plan,
    },
    Open {
        item: usize,
        steps: usize,
        stale: bool,
    },
    Beacon {
        item: usize,
        round: u64,
        signature: u8,
    },
    Close {
        item: usize,
        stale: bool,
    },
    /// The relay publishes the settings that changed.
    Publish {
        partition: u16,
    },
    Checkpoint {
        item: usize,
        stale: bool,
    },
    /// A record is read again.
    Restore {
        record: usize,
    },
    Ack {
        partition: u16,
    },
    Settings {
        quota: Option<u32>,
        tick_ms: Option<u32>,
    },
    AppendAudit {
        entry: u32,
    },
    PutHeartbeat {
        who: usize,
        text: u32,
    },
    /// Removes and puts rules of the block list that name users by their index.
    Access {
        remove: Vec<usize>,
        put: Vec<(usize, u32)>,
        contact: Option<Option<u32>>,
    },
    /// Signals of tickets, by number and bits.
    Signals {
        item: usize,
        tickets: Vec<(Lane, u64, u8)>,
    },
    AppendHour {
        item: usize,
        /// Whether the leader knows another length than the stored one.
        outdated: bool,
        stale: bool,
    },
    AddVisits {
        item: usize,
        /// Countries, by their letters, and their counts.
        countries: Vec<([u8; 2], u64)>,
    },
    Advance {
        ms: i64,
    },
}

impl Op {
    /// An item whose stock no history uses up.
    pub(crate) fn long_line() -> Self {
        Self::Put { item: 0, stock: 100_000, enabled: true, version: None, policy: None }
    }
}

const ITEMS: usize = 3;

/// The expiry of invitations, in Unix milliseconds: after every history.
const LATE: u64 = 1_900_000_000_000;

/// The rounds of beacons: so few that a signature often belongs to the round of a draw.
const ROUNDS: std::ops::Range<u64> = 1..3;

/// How many users the joins of single users choose from: so few that they often join again.
pub(crate) const FEW_USERS: usize = 9;

/// How many users the joins of long lines choose from: more than batches and entry groups hold.
const MANY_USERS: usize = 600;

/// How large the numbers of a history are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// A few users, quotas and limits below 10.
    Short,
    /// Hundreds of users, quotas and limits around `MAX_USERS_PER_CALL`.
    Long,
}

/// How many histories with a few users come with one of hundreds of users.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) short: u32,
    pub(crate) long: u32,
}

/// A history of either scale.
pub(crate) fn history(mix: Mix) -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![
        mix.short => history_of(Scale::Short, 400),
        mix.long => history_of(Scale::Long, 150),
    ]
}

/// Fewer than `max` operations after open lines and the first term.
fn history_of(scale: Scale, max: usize) -> impl Strategy<Value = Vec<Op>> {
    let opening: Vec<_> =
        (0..ITEMS).map(|item| put(Just(item), stock(scale), Just(true), scale)).collect();
    (opening, prop::collection::vec(op(scale), 1..max)).prop_map(|(opening, rest)| {
        let leader = [Op::BeginTerm];
        opening.into_iter().chain(leader).chain(rest).collect()
    })
}

/// A number below `short`, in long histories mostly one below 400.
fn size(scale: Scale, from: u32, short: u32) -> BoxedStrategy<u32> {
    match scale {
        Scale::Short => (from..short).boxed(),
        Scale::Long => prop_oneof![1 => from..short, 3 => 50..400u32].boxed(),
    }
}

fn stock(scale: Scale) -> BoxedStrategy<u32> {
    size(scale, 0, 8)
}

fn put(
    item: impl Strategy<Value = usize>,
    stock: impl Strategy<Value = u32>,
    enabled: impl Strategy<Value = bool>,
    scale: Scale,
) -> impl Strategy<Value = Op> {
    (item, stock, enabled, version(), prop::option::of(policy(scale))).prop_map(
        |(item, stock, enabled, version, policy)| Op::Put { item, stock, enabled, version, policy },
    )
}

fn version() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 2 => (0..6u64).prop_map(Some),
        1 => (u64::MAX - 3..u64::MAX).prop_map(Some)]
}

fn item_update() -> impl Strategy<Value = UpdateSpec> {
    (0..ITEMS, prop::bool::weighted(0.3), 0..8u32, version(), 0..12u64, 0..12u64).prop_map(
        |(item, gone, stock, version, offset, at)| UpdateSpec {
            item,
            gone,
            stock,
            version,
            offset,
            at,
        },
    )
}

fn plan() -> impl Strategy<Value = Plan> {
    let opens_in = prop::option::weighted(0.8, -1..1_500i64);
    let lobby_in = prop::option::weighted(0.3, -100..1_000i64);
    let closes_in = prop::option::weighted(0.2, 0..400_000i64);
    let flags = (prop::bool::weighted(0.7), prop::bool::weighted(0.1), prop::bool::weighted(0.8));
    let beacon = prop::option::weighted(0.4, ROUNDS);
    (opens_in, lobby_in, closes_in, flags, beacon).prop_map(
        |(opens_in, lobby_in, closes_in, (draw, removed, replaces), beacon)| Plan {
            opens_in,
            lobby_in,
            closes_in,
            draw,
            beacon,
            removed,
            replaces,
        },
    )
}

fn policy(scale: Scale) -> impl Strategy<Value = Policy> {
    let quota = prop::option::of(size(scale, 1, 4));
    let max = || prop::option::of(size(scale, 1, 6));
    let max = (max(), max(), lanes(), pace());
    (any::<bool>(), quota, max, any::<bool>(), 1..3u32, 0..4usize, 0..3usize, any::<bool>())
        .prop_map(
            |(
                auto,
                tokens_per_tick,
                (max_active, max_waiting, lanes, pace),
                up_to_stock,
                ttl,
                grace,
                keep,
                requeue,
            )| {
                Policy {
                    mode: if auto { Mode::Auto } else { Mode::Always },
                    pace,
                    tokens_per_tick,
                    max_active,
                    max_waiting,
                    admit_up_to_stock: up_to_stock,
                    pass_ttl_seconds: ttl * 30,
                    grace_seconds: [0, 10, 60, 1800][grace],
                    missed_keep_seconds: [0, 40, 300][keep],
                    on_rejoin: if requeue { OnRejoin::Requeue } else { OnRejoin::Keep },
                    guard: if requeue == auto { Guard::Offline } else { Guard::Online },
                    challenge: match (up_to_stock, requeue) {
                        (true, true) => ChallengePolicy::Widget,
                        (true, false) => ChallengePolicy::Pow,
                        (false, _) => ChallengePolicy::Off,
                    },
                    entry_url: None,
                    opening: None,
                    lanes,
                    page: Branding {
                        title: requeue.then(|| "Friday".into()),
                        ..Branding::default()
                    },
                }
            },
        )
}

/// The pace of a policy: mostly a fixed one.
fn pace() -> impl Strategy<Value = PacePolicy> {
    let adaptive =
        (1..4u32).prop_map(|users| PacePolicy::Adaptive(AdaptivePace::new(1, users * 60, 500)));
    prop_oneof![3 => Just(PacePolicy::Fixed), 1 => adaptive]
}

/// The lanes of a policy: mostly none, so that lines without lanes are compared as often as before.
fn lanes() -> impl Strategy<Value = Vec<LanePolicy>> {
    let lane = |name: &str, weight, first| LanePolicy {
        name: LaneName::parse(name).unwrap(),
        weight,
        first,
    };
    prop_oneof![
        4 => Just(Vec::new()),
        1 => Just(vec![lane("members", 30, false)]),
        1 => Just(vec![lane("members", 20, false), lane("press", 10, false)]),
        1 => Just(vec![lane("members", 60, false), lane("vip", 0, true)]),
        1 => Just(vec![lane("press", 45, false), lane("members", 45, false)]),
    ]
}

fn signals() -> impl Strategy<Value = Op> {
    let tickets = prop::collection::vec((lane(), 0..20u64, 0..32u8), 0..6);
    (0..ITEMS, tickets).prop_map(|(item, tickets)| Op::Signals { item, tickets })
}

fn access() -> impl Strategy<Value = Op> {
    let remove = prop::collection::vec(0..FEW_USERS, 0..3);
    let put = prop::collection::vec((0..FEW_USERS, any::<u32>()), 0..3);
    let contact = prop::option::weighted(0.2, prop::option::of(any::<u32>()));
    (remove, put, contact).prop_map(|(remove, put, contact)| Op::Access { remove, put, contact })
}

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![2 => Just(0), 1 => Just(1), 1 => Just(2)].prop_map(|n| Lane::numbered(n).unwrap())
}

/// One of a few invitations, or none.
fn invitation() -> impl Strategy<Value = Option<Invitation>> {
    let code = |id: u64| Invitation { id, uses: (id % 3 + 1) as u32, expires_at: LATE };
    prop::option::of((0..4u64).prop_map(code))
}

fn op(scale: Scale) -> impl Strategy<Value = Op> {
    let item = || 0..ITEMS;
    let tickets = || prop::collection::vec(0..1000usize, 1..4);
    // Mostly an issued number, sometimes one that was never issued.
    let off = || prop_oneof![9 => Just(0u64), 1 => 1..50u64];
    let stale = || prop::bool::weighted(0.08);
    let outbox_max = || prop_oneof![8 => Just(1_000_000u64), 1 => 0..6u64];
    let min_interval = || prop_oneof![2 => Just(0u64), 1 => Just(900u64)];
    let advance = prop_oneof![
        4 => 0..2_000i64,
        3 => Just(16_000i64),
        2 => Just(61_000i64),
        2 => Just(400_000i64),
        1 => Just(2_200_000i64),
        1 => Just(3_700_000i64),
        1 => -7_000..0i64,
    ];
    let join = (item(), prop::collection::vec(0..FEW_USERS, 1..6))
        .prop_map(|(item, users)| Op::Join { item, users });
    let invited = prop::collection::vec((0..FEW_USERS, invitation()), 1..5);
    let join_lane = (item(), lane(), invited).prop_map(|(item, lane, joins)| Op::JoinLane {
        item,
        lane,
        joins,
    });
    let join_many_lane = (item(), lane(), 0..MANY_USERS, 1..300usize)
        .prop_map(|(item, lane, from, count)| Op::JoinManyLane { item, lane, from, count });
    let join_many = (item(), 0..MANY_USERS, 1..300usize)
        .prop_map(|(item, from, count)| Op::JoinMany { item, from, count });
    let mark_all = (item(), 1..5usize).prop_map(|(item, every)| Op::MarkAll { item, every });
    let joins = match scale {
        Scale::Short => join.boxed(),
        Scale::Long => {
            prop_oneof![1 => join, 3 => join_many, 2 => join_many_lane, 1 => mark_all].boxed()
        }
    };
    prop_oneof![
        20 => joins,
        8 => join_lane,
        14 => (item(), size(scale, 0, 6), min_interval(), outbox_max(), stale()).prop_map(
            |(item, quota, min_interval, outbox_max, stale)| Op::Admit {
                item,
                quota,
                min_interval,
                outbox_max,
                stale,
            },
        ),
        10 => advance.prop_map(|ms| Op::Advance { ms }),
        8 => (item(), tickets(), off())
            .prop_map(|(item, tickets, off)| Op::Resolve { item, tickets, off }),
        8 => (item(), tickets()).prop_map(|(item, tickets)| Op::Mark { item, tickets }),
        6 => (item(), lane(), stale())
            .prop_map(|(item, lane, stale)| Op::Expire { item, lane, stale }),
        5 => (item(), lane(), stale())
            .prop_map(|(item, lane, stale)| Op::Sweep { item, lane, stale }),
        6 => (item(), 0..1000usize, off())
            .prop_map(|(item, ticket, off)| Op::Leave { item, ticket, off }),
        6 => (item(), 0..1000usize, any::<bool>())
            .prop_map(|(item, ticket, cancelled)| Op::Complete { item, ticket, cancelled }),
        2 => (item(), 0..1000usize).prop_map(|(item, ticket)| Op::Reenter { item, ticket }),
        2 => Just(Op::Replicate),
        1 => Just(Op::LoseNewest),
        1 => Just(Op::LoseEverything),
        1 => prop_oneof![Just(Op::FreshStart), Just(Op::DeclareLoss)],
        2 => (item(), tickets(), any::<bool>())
            .prop_map(|(item, tickets, completed)| Op::NoteEnded { item, tickets, completed }),
        6 => (item(), lane()).prop_map(|(item, lane)| Op::Snapshot { item, lane }),
        4 => put(item(), stock(scale), prop::bool::weighted(0.8), scale),
        2 => (item(), policy(scale), any::<bool>())
            .prop_map(|(item, policy, outdated)| Op::Policy { item, policy, outdated }),
        2 => (item(), any::<bool>()).prop_map(|(item, paused)| Op::Pause { item, paused }),
        1 => item().prop_map(|item| Op::Reset { item }),
        1 => item().prop_map(|item| Op::Remove { item }),
        3 => prop::collection::vec(item_update(), 0..5).prop_map(|updates| Op::ItemUpdates { updates }),
        1 => (0..3usize, 0..3usize).prop_map(|(log, step)| Op::Replay { log, step }),
        1 => Just(Op::BeginTerm),
        2 => (0..super::super::support::PARTITIONS).prop_map(|partition| Op::Ack { partition }),
        5 => (0..super::super::support::PARTITIONS).prop_map(|partition| Op::Publish { partition }),
        2 => (item(), stale()).prop_map(|(item, stale)| Op::Checkpoint { item, stale }),
        2 => (0..1000usize).prop_map(|record| Op::Restore { record }),
        1 => (prop::option::of(0..5u32), prop::option::of(50..2000u32))
            .prop_map(|(quota, tick_ms)| Op::Settings { quota, tick_ms }),
        4 => (item(), plan()).prop_map(|(item, plan)| Op::Plan { item, plan }),
        6 => (item(), prop_oneof![6 => Just(3usize), 1 => Just(4), 2 => 1..3usize], stale())
            .prop_map(|(item, steps, stale)| Op::Open { item, steps, stale }),
        4 => (item(), ROUNDS, 0..2u8)
            .prop_map(|(item, round, signature)| Op::Beacon { item, round, signature }),
        2 => (item(), stale()).prop_map(|(item, stale)| Op::Close { item, stale }),
        3 => (item(), 0..5u32, stale())
            .prop_map(|(item, quota, stale)| Op::Pace { item, quota, stale }),
        2 => (item(), 0..3usize, prop_oneof![0..5_000u64, 50_000..70_000u64])
            .prop_map(|(item, pod, age)| Op::OriginReport { item, pod, age }),
        1 => any::<u32>().prop_map(|entry| Op::AppendAudit { entry }),
        2 => (0..3usize, any::<u32>()).prop_map(|(who, text)| Op::PutHeartbeat { who, text }),
        3 => access(),
        3 => signals(),
        2 => (item(), prop::bool::weighted(0.2), stale())
            .prop_map(|(item, outdated, stale)| Op::AppendHour { item, outdated, stale }),
        2 => (item(), countries()).prop_map(|(item, countries)| Op::AddVisits { item, countries }),
    ]
}

/// More countries than get a label of their own.
fn countries() -> impl Strategy<Value = Vec<([u8; 2], u64)>> {
    let country = (b'a'..=b'z', b'a'..=b'z').prop_map(|(one, other)| [one, other]);
    prop::collection::vec((country, 1..100_000_u64), 1..50)
}
