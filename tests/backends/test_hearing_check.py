"""Who passes the hearing check, and by what: texts, the question on a card, other clips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.backends.asking import model_card, tone
from tests.loopback import Loopback, clip_digest
from vibe_harness.backends.hearing_check import SILENCE, HearingClip, check_hearing
from vibe_harness.backends.remote.openai_server import OpenAIEngine
from vibe_harness.backends.word_errors import error_rate, words_of
from vibe_harness.cards.schema import HearingQuestion, ModelCard
from vibe_harness.errors import EngineError
from vibe_harness.records import Outcome, Request, Response

CARD = model_card("http://nowhere")
SENTENCES = ("Kids are talking by the door.", "It's eleven o'clock", "The surface is slick", "Don't forget a jacket")
QUESTION = HearingQuestion(
    prompt="Which word is said: kids, jacket or clock?", answers=["kids", "jacket", "clock", "none"]
)
ASKING = CARD.model_copy(update={"hearing_check": QUESTION})


def clips(
    texts: Sequence[str | None], sentences: Sequence[str | None] | None = None, cut: bool = False
) -> list[HearingClip]:
    known = texts if sentences is None else sentences
    return [
        HearingClip(f"c{n}", lambda n=n: tone(100 + 50 * n), text, sentence, cut)
        for n, (text, sentence) in enumerate(zip(texts, known, strict=True))
    ]


class Says:
    """A model that gives these answers, the last to silence."""

    def __init__(self, *answers: str, outcome: Outcome = Outcome.OK) -> None:
        self.answers, self.outcome, self.asked = answers, outcome, list[Request]()

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        for text, request in zip(self.answers, requests, strict=True):
            self.asked.append(request)
            yield Response(request.id, self.outcome, text)


def passes(
    answers: Sequence[str], given: Sequence[HearingClip], card: ModelCard = CARD, **more: Outcome
) -> tuple[str, int, int]:
    found = check_hearing(Says(*answers, **more), card, given)
    assert found.answers.keys() == {*(clip.id for clip in given), SILENCE}
    return found.by, found.right, found.clips


def refused(answers: Sequence[str], given: Sequence[HearingClip], message: str, card: ModelCard = CARD) -> None:
    with pytest.raises(EngineError, match=f"(?s){message}.*--no-hearing-check") as told:
        check_hearing(Says(*answers), card, given)
    assert "\n" not in str(told.value)


# ------------------------------------------------------------------------------------------------------ transcripts


def test_error_rates_by_hand() -> None:
    said = words_of("Kids are talking by the door.")
    assert error_rate(said, words_of("kids are TALKING by the door")) == 0
    assert error_rate(said, words_of("Kids are walking by a door")) == pytest.approx(2 / 6)
    assert error_rate(said, words_of('The speaker says: "Kids are talking by the door", in a calm tone.')) == 0
    assert error_rate(said, words_of("Kids talking by the door")) == pytest.approx(1 / 6)
    assert error_rate(said, []) == 1 and error_rate(said, ["unheard"] * 40) == 1
    assert words_of("It’s 11 o'clock!") == ["its", "11", "oclock"]
    assert words_of("今天天气很好。") == list("今天天气很好") and words_of("오늘 날씨") == list("오늘날씨")


@pytest.mark.parametrize(
    "answers",
    [
        SENTENCES,
        [f"The speaker says: '{text}'" for text in SENTENCES],
        ["<think>I hear kids.</think>Kids are talking by the door", *SENTENCES[1:]],
        [
            "Kids are walking by a door",
            "It is 11 o'clock",
            "the surfaces slick",
            "Do not forget the jacket",
        ],  # two right
        [SENTENCES[0], SENTENCES[1], "I cannot make it out", ""],
    ],
)
def test_who_writes_down_what_is_said(answers: Sequence[str]) -> None:
    by, right, asked = passes([*answers, "nothing"], clips(SENTENCES))
    assert (by, asked) == ("transcripts", 4) and right >= 2


@pytest.mark.parametrize(
    ("answers", "silence"),
    [
        (
            ["I cannot hear any audio", "Sorry, there is no sound", "No audio was provided", "I am unable to listen"],
            "None",
        ),
        (["a woman speaks calmly", "a man is angry", "somebody whispers", "a child is laughing"], "nothing"),
        (["the weather is fine today", "I like to read", "my dog is old", "we went to the sea"], "nothing"),
        ([SENTENCES[1], SENTENCES[2], SENTENCES[3], SENTENCES[0]], "nothing"),  # of other clips
        ([SENTENCES[0]] * 4, "nothing"),  # one of them by heart
        ([SENTENCES[0], "what?", "", "I see"], "nothing"),
    ],
)
def test_who_does_not(answers: Sequence[str], silence: str) -> None:
    refused(
        [*answers, silence], clips(SENTENCES), "'m' does not hear, or cannot write down what it hears: it wrote down"
    )


def test_sentences_that_differ_in_two_words_have_to_be_told_from_each_other() -> None:
    two = ("Kids are talking by the door", "Dogs are sitting by the door")
    four = clips([*two, *two])
    assert passes([*two, *two, "silence"], four) == ("transcripts", 4, 4)
    refused([two[0], two[0], two[0], two[0], "silence"], four, "it wrote down 2 of 4 clips")
    refused([two[1], two[0], two[1], two[0], "silence"], four, "it wrote down 0 of 4 clips")


def test_a_passage_that_all_read() -> None:
    """One text: that silence is not written down as it says that the model hears."""
    same = clips([SENTENCES[0]] * 4)
    assert passes([SENTENCES[0]] * 4 + [""], same) == ("transcripts", 4, 4)
    refused(
        [SENTENCES[0]] * 3 + ["kids are talking", "Kids are talking by the doors"],
        same,
        "for silence too .*from elsewhere",
    )


def test_what_was_cut_is_compared_with_the_beginning() -> None:
    long = " ".join(f"word{n}" for n in range(60))
    other = " ".join(f"other{n}" for n in range(60))
    half = [" ".join(long.split()[:20]), " ".join(other.split()[:20])]
    assert passes([*half, "x"], clips([long, other]), outcome=Outcome.TRUNCATED) == ("transcripts", 2, 2)
    assert passes([*half, "x"], clips([long, other], cut=True)) == ("transcripts", 2, 2)
    refused([*half, "x"], clips([long, other]), "it wrote down 0 of 2")


def test_languages_without_spaces() -> None:
    texts = ("今天天气很好我们去公园", "他昨天买了一本新书", "请把门关上谢谢你", "火车八点钟离开车站")
    assert passes(["今天天气很好，我们去公园。", *texts[1:], "无"], clips(texts))[:2] == ("transcripts", 4)


# --------------------------------------------------------------------------------------------------- without texts

NOTHING = {
    "English": ("I cannot hear any audio.", "Sorry, no sound was provided.", "There's nothing audible in the recording",
                "Please upload the audio file so that I can help"),
    "German": ("Ich kann keine Audiodatei hören.", "Es ist nichts zu hören.", "Die Aufnahme enthält keine Sprache",
               "Leider ist kein Ton vorhanden."),
    "French": ("Je n'entends rien.", "Je ne peux pas écouter l'audio.", "Il n'y a aucun enregistrement.",
               "Aucune voix"),
    "Spanish": ("No puedo escuchar el audio.", "No se oye nada.", "No hay ninguna grabación", "Sin sonido"),
    "Portuguese": ("Não consigo ouvir o áudio.", "Não há som.", "Nenhuma gravação foi enviada", "Não ouço nada"),
    "Italian": ("Non sento nulla.", "Non c'è alcun audio.", "Nessuna voce", "Non posso ascoltare la registrazione"),
    "Dutch": ("Ik kan geen audio horen.", "Er is niets te horen", "Geen geluid", "Ik hoor niets"),
    "Polish": ("Nie słyszę żadnego dźwięku.", "Brak nagrania", "Nic nie słychać", "Nie mogę odtworzyć audio"),
    "Russian": ("Я не слышу аудио.", "Нет звука.", "Запись не содержит речи", "Ничего не слышно"),
    "Turkish": ("Ses duyamıyorum.", "Hiçbir ses yok.", "Kayıt yok", "Sesi dinleyemiyorum"),
    "Arabic": ("لا أستطيع سماع أي صوت", "لا يوجد تسجيل", "لم أسمع شيئا", "ليس هناك صوت"),
    "Hindi": ("मैं कोई ऑडियो नहीं सुन सकता", "कोई आवाज़ नहीं है", "रिकॉर्डिंग नहीं मिली", "कुछ सुनाई नहीं देता"),
    "Chinese": ("我听不到任何音频。", "没有声音", "无法播放录音", "沒有聽到任何聲音"),
    "Japanese": ("音声が聞こえません。", "録音がありません", "何も聞こえない", "無音です"),
    "Korean": ("오디오를 들을 수 없습니다.", "소리가 들리지 않습니다", "음성이 없습니다", "녹음이 없어요"),
    "Indonesian": ("Saya tidak dapat mendengar audio.", "Tidak ada suara", "Tidak ada rekaman",
                   "Saya tidak mendengar apa pun"),
    "Vietnamese": ("Tôi không nghe thấy gì.", "Không có âm thanh", "Không có bản ghi âm", "Tôi không thể nghe"),
    "Thai": ("ฉันไม่ได้ยินเสียง", "ไม่มีเสียง", "ฟังไม่ได้ ไม่มีไฟล์", "ไม่ได้ยินอะไรเลย"),
    "Swedish": ("Jag kan inte höra något ljud.", "Inget ljud", "Det finns ingen inspelning", "Jag hör inget"),
    "brackets": ("[silence]", "(no speech)", "*music*", "[BLANK_AUDIO]"),
}  # fmt: skip


@pytest.mark.parametrize("language", NOTHING)
def test_who_says_in_varying_words_that_there_is_nothing_to_hear(language: str) -> None:
    refused([*NOTHING[language], "..."], clips([None] * 4, list("abcd")), r"does not hear: for [34] of 4 clips it says")


@pytest.mark.parametrize(
    "answers",
    [
        SENTENCES,
        ("Wir haben nichts gekauft.", "Il ne prend pas son chapeau", "No lo sé, pero voy contigo", "他不知道去哪里"),
        ("Não vou hoje", "Nessuno è venuto", "Я не знаю дорогу", "আমি জানি না"),
    ],
)
def test_other_words_for_other_clips(answers: Sequence[str]) -> None:
    assert passes([*answers, "nothing"], clips([None] * 4, list("abcd"))) == ("other clips", 4, 4)


def test_the_same_for_all_clips_and_otherwise_for_silence() -> None:
    """It tells sound from silence, and no more: only a corpus in which all say the same can ask no more of it."""
    answers = ["some words are spoken"] * 4 + ["silence"]
    refused(
        answers,
        clips([None] * 4, list("abcd")),
        r"wrote the same \('some words are spoken'\) for different clips\. Check",
    )
    refused(
        answers, clips([None] * 4), "for different clips. Where all clips say the same, tell so in a column sentence_id"
    )
    assert passes(answers, clips([None] * 4, ["paragraph"] * 4)) == ("silence", 4, 4)
    refused(["one", "one", "one", "two", "silence"], clips([None] * 4, list("abcd")), "wrote the same .'one'.")
    refused(["a", "x", "x", "x", "x"], clips([None] * 4, list("abcd")), "writes what it writes for silence")


def test_texts_of_some_clips_alone_are_not_compared() -> None:
    assert passes([*SENTENCES, "x"], clips([SENTENCES[0], None, None, None], list("abcd")))[0] == "other clips"


# ------------------------------------------------------------------------------------------- the question of a card


def test_a_question_is_answered_by_what_is_said() -> None:
    texts = ["Kids talk", "a jacket", "the clock", "kids walk"] * 3
    right = ["kids", "Jacket.", "clock", "kids"] * 3
    assert passes([*right, "none"], clips(texts), ASKING) == ("question", 12, 12)
    some = [*right[:8], "none", "none", "none", "none"]
    assert passes([*some, "none"], clips(texts), ASKING) == ("question", 8, 12)
    message = "named the right one for .* of 12 clips, which is no more than chance"
    refused(["kids"] * 12 + ["none"], clips(texts), message, ASKING)
    refused(["clock", "kids", "kids", "jacket"] * 3 + ["none"], clips(texts), message, ASKING)
    refused(["none"] * 11 + ["kids", "clock"], clips(texts), message, ASKING)


def test_a_question_of_which_one_word_is_said_throughout() -> None:
    texts = ["Kids talk"] * 6
    assert passes(["kids"] * 5 + ["none", "none"], clips(texts), ASKING) == ("question", 5, 6)
    refused(["kids"] * 5 + ["none", "kids"], clips(texts), "no more than chance", ASKING)


def test_a_question_whose_clips_have_no_texts() -> None:
    given = clips([None] * 4, list("abcd"))
    assert passes(["kids", "none", "clock", "jacket", "none"], given, ASKING)[0] == "other clips"
    refused(["kids", "kids", "kids", "kids", "none"], given, "wrote the same .'kids'.", ASKING)


def test_a_server_that_hears_and_one_that_lost_the_clips() -> None:
    said = dict(zip(map(clip_digest, [tone(100 + 50 * n) for n in range(4)]), SENTENCES, strict=True))
    for drop in (False, True):
        with Loopback(says=said, drop_audio=drop) as server:
            engine = OpenAIEngine(model_card(server.url), [])
            if drop:
                with pytest.raises(EngineError, match="does not hear"):
                    check_hearing(engine, CARD, clips(SENTENCES))
            else:
                assert check_hearing(engine, CARD, clips(SENTENCES)).error_rate == 0
            engine.close()
