"""Answers that say that nothing was heard, in the words of many languages."""

from __future__ import annotations

import re
import unicodedata

# A word that denies and a word for hearing or for what is heard, near each other in either order. By language: English,
# German, French, Spanish, Portuguese, Italian, Dutch, Scandinavian, Polish, Czech, Russian, Ukrainian, Greek, Turkish,
# Arabic, Persian, Hebrew, Hindi, Bengali, Chinese, Japanese, Korean, Indonesian, Vietnamese, Thai, Finnish.
_PAIRS = (
    (r"\b(?:no|not|cannot|nothing|none|without|unable)\b|n['’]t\b",
     r"\b(?:hear|heard|hearing|audible|audio|sounds?|recordings?|listen\w*|speech|spoken|voices?|transcribe)\b"),
    (r"\b(?:nicht|nichts|kein\w*|ohne)\b", r"\b(?:hör\w*|gehört|audio\w*|aufnahme|ton|geräusch\w*|gesproch\w*)\b"),
    (r"\b(?:pas|rien|aucune?|sans|impossible)\b",
     r"\b(?:entend\w*|écout\w*|audio|audible|enregistrement|paroles?|voix)\b"),
    (r"\b(?:no|nada|ningún|ninguna|sin)\b", r"\b(?:oigo|oír|oye|escuch\w*|audio|grabación|sonidos?|voz|voces)\b"),
    (r"\b(?:não|nada|nenhuma?|sem)\b", r"\b(?:ou[vç]\w*|escut\w*|áudio|gravação|som|sons|voz)\b"),
    (r"\b(?:non|nessun\w*|nulla|niente|senza)\b",
     r"\b(?:sento|sente|sentire|sentito|udire|udibil\w*|ascolt\w*|audio|registrazione|suon[oi]|voc[ei])\b"),
    (r"\b(?:niet|niets|geen|zonder)\b", r"\b(?:hoor\w*|horen|gehoord|luister\w*|audio|geluid\w*|opname)\b"),
    (r"\b(?:inte|inga?|inget|ikke|ingen|intet|ikkje)\b",
     r"\b(?:hör\w*|hør\w*|ljud\w*|lyd\w*|audio|inspelning\w*|optagelse\w*|opptak\w*)\b"),
    (r"\b(?:nie|nic|brak|żadn\w*)\b", r"\b(?:usłysz\w*|słysz\w*|słychać|audio|nagrani\w*|dźwięk\w*|głos\w*)\b"),
    (r"\b(?:ne\w*|nic|žádn\w*)\b", r"\b(?:ne?slyš\w*|slyš\w*|audio|nahrávk\w*|zvuk\w*|hlas\w*)\b"),
    (r"\b(?:не|нет|ничего|без|никак\w*)\b",
     r"\b(?:у?слыш\w*|аудио\w*|запис\w*|звук\w*|голос\w*|реч[ьи])\b"),
    (r"\b(?:не|немає|нічого|жодн\w*)\b",
     r"\b(?:чу\w*|аудіо\w*|запис\w*|звук\w*)\b"),
    (r"\b(?:δεν|κανέν\w*|καμί\w*|χωρίς)\b",
     r"\b(?:ακού\w*|ήχ\w*|ηχητικ\w*|ηχογράφ\w*)\b"),
    (r"\b(?:yok|değil|hiçbir|\w+[ae]m[ıi]yor\w*|\w+m[ıiuü]yor\w*|\w+[ae]madım|\w+[ae]medim)\b",
     r"\b(?:duy\w*|işit\w*|dinle\w*|ses\w*|kayıt\w*|kayd\w*)\b"),
    ("لا|لم|ليس|لن|غير|بدون",
     "سمع|سماع|صوت|تسجيل"),
    ("نیست|نمی|هیچ|نتوان", "شنید|شنو|صدا|صوت"),
    ("לא|אין|ללא", "שומע|שמע|שמוע|אודיו|הקלטה|קול"),
    ("नहीं|बिना", "सुन|ऑडियो|आवाज|रिकॉर्ड|ध्वनि"),
    ("না|নেই|নি", "শুন|অডিও|শব্দ|রেকর্ড"),
    ("没|沒|无|無|不|未", "听|聽|音频|音訊|音頻|声音|聲音|录音|錄音|语音|語音"),
    ("ません|ない|なし|なかっ|ず", "聞|聴|音声|録音|音|オーディオ"),
    ("없|않|못|불가", "들리|들을|들려|들어|듣|음성|오디오|녹음|소리"),
    (r"\b(?:tidak|tak|tiada|belum|tanpa)\b", r"\b(?:\w*dengar\w*|audio|suara|rekaman|bunyi)\b"),
    (r"\b(?:không|chưa|chẳng)\b", r"\b(?:nghe|âm thanh|ghi âm|audio)\b"),
    ("ไม่", "ได้ยิน|เสียง|ฟัง"),
    (r"\b(?:ei|en|eivät|mitään)\b", r"\b(?:kuul\w*|ään\w*|ääni\w*|audio\w*)\b"),
)  # fmt: skip
_NEAR = 60  # letters between the two
_ALONE = re.compile(
    r"silen(?:ce|t|cio|zio|cieux|zioso)\b|silêncio|\binaudible|\bstille\b|無音|静音|무음|тишина|صمت|"
    r"\b(?:provide|upload|attach|send|share)\b.{0,40}\b(?:audio|recording|file|clip|sound)\b|"
    r"(?:提供|上传|上傳).{0,20}(?:音频|音訊|录音|錄音|文件)",
)
_IN_BRACKETS = re.compile(r"\W*[\[(*<（【「][^\])>）】」]{0,60}[\])*>）】」]\W*")
_DENIALS = tuple(
    re.compile(f"(?:{deny}).{{0,{_NEAR}}}(?:{hear})|(?:{hear}).{{0,{_NEAR}}}(?:{deny})", re.DOTALL)
    for deny, hear in _PAIRS
)


def says_nothing_was_heard(text: str) -> bool:
    """Whether an answer is empty, a remark in brackets ("[silence]"), or says that there is nothing to hear or that the
    model cannot hear it.

    What is said in a recording may read so too ("I cannot hear you"): to be asked only where it is not known what is
    said, and of several recordings.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    if not any(map(str.isalnum, plain)) or _IN_BRACKETS.fullmatch(plain) or _ALONE.search(plain):
        return True
    return any(denial.search(plain) for denial in _DENIALS)
