/* export.h - marks what libbelay.so exports. */
#ifndef BELAY_EXPORT_H
#define BELAY_EXPORT_H

#if defined(__GNUC__)
#define BELAY_API __attribute__((visibility("default")))
#define BELAY_MUST_USE __attribute__((warn_unused_result))
#else
#define BELAY_API
#define BELAY_MUST_USE
#endif

#endif /* BELAY_EXPORT_H */
