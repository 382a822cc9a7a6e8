use super::*;
use crate::driver::{DescentState, EpochStart};
use crate::numeric::Streams;
use crate::schedules::ScheduleState;
use proptest::prelude::*;

fn layout() -> ParamLayout {
    ParamLayout::new([("layer1.weight", 2, 3), ("layer2.weight", 1, 2)]).unwrap()
}

fn state() -> RunState {
    let params = vec![1.0, -0.0, 5e-324, 1.0 / 3.0, f64::MAX, 2.0, -7.0, 8.0];
    let descent = DescentState {
        optimiser: OptimiserState::new("adam")
            .with_number("count", f64::INFINITY)
            .with_vector("first.first", &params)
            .with_vector("second", &[1.0]),
        params: params.clone(),
        schedule: ScheduleState::Adaptive { log_alpha: -1e5, log_reference: None, redos: 3 },
        step: 77,
        epoch: 7,
        log_time: f64::NEG_INFINITY,
        full_loss: (-2302.5, true),
        order: (Streams::new(u64::MAX).stream("order").state(), 4),
        epoch_start: None,
    };
    RunState {
        recipe: "abc".into(),
        step: 77,
        process: ProcessState::Descent(Box::new(descent)),
        probe: InstrumentState { previous: Some(params.clone()), start: Some(vec![]) },
        anchor: Some(Anchor { size: 2.5, direction: params, path: vec![[0.9, 0.1]] }),
        metrics: Mark { lines: 3, bytes: 99, sha256: "00".into() },
        histograms: Mark::default(),
        outcome: Some(StopReason::NotFinite { step: 3, what: "ln L = NaN".into() }),
    }
}

fn bytes() -> Vec<u8> {
    encode(Path::new("x"), &layout(), &state()).unwrap()
}

#[test]
fn a_state_survives_bit_for_bit_and_always_gives_the_same_bytes() {
    assert_eq!(decode(Path::new("x"), &bytes()).unwrap(), state());
    assert_eq!(bytes(), bytes());
    let tensors = bytes();
    let tensors = SafeTensors::deserialize(&tensors).unwrap();
    assert_eq!(tensors.tensor("layer1.weight").unwrap().shape(), [2, 3]);
}

#[test]
fn long_vectors_are_those_of_the_table() {
    let mut state = state();
    let start = EpochStart {
        params: vec![0.5; 8],
        optimiser: OptimiserState::new("adam").with_vector("first.first", &[3.0, 4.0]).with_vector("none", &[]),
        step: 70,
        log_time: 0.0,
    };
    if let ProcessState::Descent(descent) = &mut state.process {
        descent.epoch_start = Some(start);
    }
    let Ok(Value::Table(mut table)) = Value::try_from(&state) else { panic!("a state is a table") };
    let (mut lifted, mut long) = (Vec::new(), Vec::new());
    lift("", &mut table, &mut lifted);
    long.extend(long_vectors(&mut state).into_iter().map(|(name, values)| (name, values.clone())));
    long.retain(|(_, values)| !values.is_empty());
    assert_eq!(long.len(), 6);
    assert!(long.iter().all(|vector| lifted.contains(vector)), "{long:?} of {lifted:?}");
    let bytes = encode(Path::new("x"), &layout(), &state).unwrap();
    assert_eq!(decode(Path::new("x"), &bytes).unwrap(), state);
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let whole = bytes();
    for length in 0..whole.len() {
        assert!(decode(Path::new("x"), &whole[..length]).is_err(), "{length}");
    }
    for place in 0..whole.len() {
        let mut broken = whole.clone();
        broken[place] ^= 0x20;
        // the header's padding and the order of its words may change without meaning; the state may not
        if let Ok(found) = decode(Path::new("x"), &broken) {
            assert_eq!(found, state(), "{place}");
        }
    }
    let text = decode(Path::new("dir/step-5.safetensors"), &whole[..40]).unwrap_err().to_string();
    assert!(text.contains("step-5.safetensors") && text.contains("damaged"), "{text}");
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
    let folder = std::env::temp_dir().join(format!("limitpoint-checkpoints-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let checkpoints = Checkpoints::new(folder.clone());
    for step in [10, 20, 30] {
        checkpoints.save_regular(&layout(), &RunState { step, ..state() }).unwrap();
    }
    let (states, complaints) = checkpoints.readable();
    assert_eq!((states.len(), states[0].step, complaints.len()), (2, 30, 0));
    let last = folder.join("step-000000000000030.safetensors");
    let whole = std::fs::read(&last).unwrap();
    std::fs::write(&last, &whole[..whole.len() - 9]).unwrap();
    let (states, complaints) = checkpoints.readable();
    assert_eq!((states.len(), states[0].step), (1, 20));
    assert!(complaints[0].contains("30.safetensors") && complaints[0].contains("earlier"), "{complaints:?}");
    assert!(!last.exists() && checkpoints.readable().1.is_empty(), "a damaged checkpoint is of no use");
    std::fs::remove_dir_all(&folder).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_it_panic(noise in proptest::collection::vec(any::<u8>(), 0..200), place in 0usize..4000) {
        let _ = decode(Path::new("x"), &noise);
        let mut broken = bytes();
        let at = place % broken.len();
        for (offset, byte) in noise.iter().enumerate() {
            if let Some(target) = broken.get_mut(at + offset) {
                *target = *byte;
            }
        }
        let _ = decode(Path::new("x"), &broken);
    }

    #[test]
    fn a_header_that_promises_too_much_is_refused(length in any::<u64>()) {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(b"{}");
        prop_assert!(decode(Path::new("x"), &bytes).is_err());
    }
}
